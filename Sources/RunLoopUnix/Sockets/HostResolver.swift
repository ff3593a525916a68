internal import Glibc
public import RunLoopKit

/// Finds the addresses of a name on a background thread, so that a slow name server blocks no loop.
public enum HostResolver {
    /// Why there are no addresses, in the words of the system's resolver.
    public struct Failure: Error, Sendable, Equatable, CustomStringConvertible {
        /// The name that was looked up.
        public let name: String
        /// What the resolver said, for example `Name or service not known`.
        public let reason: String

        public var description: String { "\(name): \(reason)" }
    }

    /// Finds the addresses of `name`, in the order in which to try them. While it looks, the loop has something to wait
    /// for.
    ///
    /// - Parameters:
    ///   - name: a name, or an address in digits.
    ///   - port: the port of the addresses.
    ///   - loop: the calling thread's loop.
    ///   - modes: the modes in which the completion may be called.
    ///   - completion: called once, on the loop's thread, and never before this call has returned.
    public static func resolve(
        _ name: String, port: UInt16, on loop: RunLoop, modes: RunLoop.Modes = .common,
        completion: @escaping (Result<[Endpoint], Failure>) -> Void, file: StaticString = #fileID,
        line: UInt32 = #line
    ) {
        // The completion stays on its thread, under a number. Only the number travels.
        let number = Waiting.of(loop).insert(completion)
        // Keeps the loop's runs from finishing until the answer comes.
        let idle = CustomSource(file: file, line: line)
        idle.name = "resolving \(name)"
        loop.add(idle, forMode: modes)
        Waiting.of(loop).keep(idle, number)
        let remote = loop.remote
        DeliveryQueue.background.asyncAfter(.zero) {
            let result = lookUp(name, port)
            remote.perform(inModes: modes) { Waiting.of($0).complete(number, result) }
        }
    }

    private static func lookUp(_ name: String, _ port: UInt16) -> Result<[Endpoint], Failure> {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_flags = AI_NUMERICSERV | AI_ADDRCONFIG
        var found: UnsafeMutablePointer<addrinfo>?
        let status = getaddrinfo(name, String(port), &hints, &found)
        guard status == 0 else { return .failure(Failure(name: name, reason: String(cString: gai_strerror(status)))) }
        defer { freeaddrinfo(found) }
        var addresses: [Endpoint] = []
        var next = found
        while let info = next {
            addresses.append(Endpoint(info.pointee.ai_addr, info.pointee.ai_addrlen))
            next = info.pointee.ai_next
        }
        return .success(addresses)
    }

    /// The look-ups of a loop that are under way.
    private final class Waiting {
        private var completions: [Int: (Result<[Endpoint], Failure>) -> Void] = [:]
        private var idle: [Int: CustomSource] = [:]
        private var last = 0

        static func of(_ loop: RunLoop) -> Waiting {
            loop[local]
        }

        private static let local = RunLoop.Local { _ in Waiting() }

        func insert(_ completion: @escaping (Result<[Endpoint], Failure>) -> Void) -> Int {
            last += 1
            completions[last] = completion
            return last
        }

        func keep(_ source: CustomSource, _ number: Int) {
            idle[number] = source
        }

        func complete(_ number: Int, _ result: Result<[Endpoint], Failure>) {
            idle.removeValue(forKey: number)?.invalidate()
            completions.removeValue(forKey: number)?(result)
        }
    }
}
