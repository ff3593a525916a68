import Glibc
import RunLoopHosts
import RunLoopSimulation

// `Programs hummingbird SEED` and `Programs redis SEED` run a simulated hour and print its trace.
// `Programs commands SEED COUNT` prints random commands for redis-cli, and `Programs replies redis-server|TTLStore SEED COUNT`
// the replies to them on simulated hosts.
//
// Each fails with a sentence on the standard error.

@main
enum Programs {
    static func main() throws {
        var arguments = CommandLine.arguments.dropFirst()
        let name = arguments.popFirst()
        func number() -> Int { arguments.popFirst().flatMap { Int($0) } ?? 1 }
        switch name {
        case "hummingbird": HummingbirdHour.run(seed: UInt64(number()))
        case "redis": RedisHour.run(seed: UInt64(number()))
        case "commands": print(Commands(seed: UInt64(number()), count: number()).text, terminator: "")
        case "replies":
            let isTTLStore = arguments.popFirst() == "TTLStore"
            Commands(seed: UInt64(number()), count: number()).printReplies(of: isTTLStore ? .ttlStore : .redis)
        default: fail("there is no \(name ?? "command")")
        }
    }

    /// The path of a program that is built beside this one.
    static func path(of program: String) -> String {
        var room = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = max(0, readlink("/proc/self/exe", &room, room.count - 1))
        let own = String(decoding: room.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return own[...own.lastIndex(of: "/")!] + program
    }

    static func fail(_ sentence: String) -> Never {
        fflush(nil)
        ("FAILED " + sentence + "\n").withCString { _ = write(STDERR_FILENO, $0, strlen($0)) }
        exit(1)
    }

    /// The lines that a host's programs have written, each with its time in seconds.
    static func lines(of host: String, _ simulation: Simulation) -> [(time: Double, text: Substring)] {
        let start = "\(host) - wrote "
        return simulation.trace.compactMap { line in
            guard let space = line.firstIndex(of: " ") else { return nil }
            let event = line[line.index(after: space)...]
            return event.hasPrefix(start) ? (Double(line[..<space])!, event.dropFirst(start.count)) : nil
        }
    }
}
