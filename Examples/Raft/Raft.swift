import ArgumentParser
import Logging
import RunLoopKit
import RunLoopUnix

@main
struct Raft: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "Raft",
        abstract: "A member of a cluster that keeps the values of keys as long as most members run.")

    @Option(help: "The name of this member.")
    var name: String

    @Option(help: "A member of the cluster, as name=host:port; once for each of them, and the same for all.")
    var member: [Address]

    @Option(help: "The address to listen on.")
    var bind = "127.0.0.1"

    @Option(help: "The file that keeps the member's term, vote and log.")
    var journal: String

    @Option(help: "The shortest time without a leader, in milliseconds, after which a member wants to be elected.")
    var timeout = 300

    @Option(help: "The most entries that a message has.")
    var batch = 64

    @Option(help: "What to log: trace, debug, info, notice, warning, error or critical.")
    var logLevel = "info"

    func validate() throws {
        guard Set(member.map(\.name)).count == member.count else {
            throw ValidationError("each member has a name of its own")
        }
        guard member.contains(where: { $0.name == name }) else {
            throw ValidationError("there is no --member \(name)=host:port")
        }
        guard (10...60_000).contains(timeout) else {
            throw ValidationError("--timeout takes milliseconds from 10 to 60000")
        }
        guard (1...64).contains(batch) else { throw ValidationError("--batch takes a number from 1 to 64") }
        guard Logger.Level(rawValue: logLevel) != nil else {
            throw ValidationError("there is no log level \(logLevel)")
        }
    }

    /// The address of this member.
    var own: Address { member.first { $0.name == name }! }

    func run() throws {
        // Logging never waits for a reader.
        var log = Logger(label: "raft", factory: { StreamLogHandler(label: $0, stream: StandardError.shared) })
        defer { StandardError.shared.flush(within: .seconds(1)) }
        log.logLevel = Logger.Level(rawValue: logLevel) ?? .info
        do {
            throw ExitCode(try RaftDaemon(self, log).run())
        } catch let refusal as RaftDaemon.Refusal {
            log.critical("\(refusal.text)")
            throw ExitCode(refusal.status)
        }
    }
}

extension Address: ExpressibleByArgument {
    init?(argument: String) {
        self.init(argument)
    }
}
