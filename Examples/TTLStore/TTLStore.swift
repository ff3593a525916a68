import ArgumentParser
import Glibc
import Logging
import RunLoopKit
import RunLoopUnix

@main
struct TTLStore: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "TTLStore", abstract: "A store of keys with times to live, for clients of the Redis protocol.")

    @Option(help: "The TCP port; 0 for none.")
    var port: UInt16 = 6379

    @Option(help: "The address to listen on.")
    var bind = "127.0.0.1"

    @Option(help: "The path of a Unix socket to listen on as well.")
    var unix: String?

    @Option(help: "How many clients may be connected.")
    var maxClients = 10_000

    @Option(help: "The file that the store is loaded from at the start, and written to on SIGHUP and at the stop.")
    var snapshot: String?

    @Option(help: "After how many seconds a silent client is closed; 0 for never.")
    var idleTimeout = 0.0

    @Option(help: "What to log: trace, debug, info, notice, warning, error or critical.")
    var logLevel = "info"

    func validate() throws {
        guard maxClients > 0 else { throw ValidationError("--max-clients takes a number above zero") }
        guard idleTimeout >= 0, idleTimeout.isFinite else {
            throw ValidationError("--idle-timeout takes seconds, or 0 for never")
        }
        guard Logger.Level(rawValue: logLevel) != nil else {
            throw ValidationError("there is no log level \(logLevel)")
        }
    }

    func run() throws {
        var log = Logger(label: "ttlstore", factory: { StreamLogHandler.standardError(label: $0) })
        log.logLevel = Logger.Level(rawValue: logLevel) ?? .info
        do {
            throw ExitCode(try StoreDaemon(self, log).run())
        } catch let refusal as StoreDaemon.Refusal {
            log.critical("\(refusal.text)")
            throw ExitCode(refusal.status)
        }
    }
}
