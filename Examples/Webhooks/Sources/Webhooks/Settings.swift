import FoundationEssentials
import RunLoopHTTP
import RunLoopUnix

/// The settings of the service, from a file of JSON that has all of them, and is read again on SIGHUP.
struct Settings: Decodable {
    struct Destination: Decodable {
        /// The address of the requests, such as `https://billing.example/hooks`.
        let address: String
        /// The largest number of deliveries at a time, up to 64; the number of waiting hooks from which on others are
        /// refused.
        let simultaneous, backlog: Int
    }

    let destinations: [String: Destination]
    /// The largest number of bytes in a hook.
    let hookBytes: Int
    /// The pause after the first failed try, and the longest one. They double in between.
    let firstPauseSeconds, longestPauseSeconds: Double
    /// The age at which a hook that its destination does not take is given up.
    let lifetimeHours: Double

    /// The reason why the program cannot be used like this.
    struct Invalid: Error, CustomStringConvertible {
        let description: String
    }

    static func read(_ path: String) throws(Invalid) -> Settings {
        do {
            let bytes = Data(try Disk.current.open(path, .reading).contents())
            let settings = try JSONDecoder().decode(Settings.self, from: bytes)
            for destination in settings.destinations.values { _ = try HTTPRequest(.post, destination.address) }
            guard settings.destinations.values.allSatisfy({ (1...64).contains($0.simultaneous) }),
                (0.001...1e6).contains(settings.firstPauseSeconds), (0...1e6).contains(settings.lifetimeHours),
                (settings.firstPauseSeconds...1e6).contains(settings.longestPauseSeconds)
            else { throw Invalid(description: "a number is out of its range") }
            return settings
        } catch {
            throw Invalid(description: "the settings \(path) cannot be used: \(error)")
        }
    }
}
