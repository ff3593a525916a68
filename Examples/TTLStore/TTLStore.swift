import ArgumentParser
import Glibc
import Logging
import RecordOptions
import RunLoopKit
import RunLoopRecording
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

    @Option(help: "How many loops serve clients; if more than one, each on a thread of its own.")
    var loops = 1

    @Option(help: "How many clients may be connected.")
    var maxClients = 10_000

    @Option(help: "The file that the store is loaded from at the start, and written to on SIGHUP and at the stop.")
    var snapshot: String?

    @Option(help: "The file that each change is appended to. If there is one, the store is loaded from it.")
    var log: String?

    @Option(help: "When changes in the log are safe from a loss of power: always, everysec or no.")
    var fsync = AppendLog.Sync.everysec

    @Option(help: "How long the log must be before it is written anew, for example 64mb.")
    var logRewriteSize = ByteCount(bytes: 64 * 1024 * 1024)

    @Option(help: "How much memory keys and values may take, for example 100mb; 0 for no limit.")
    var maxmemory = ByteCount(bytes: 0)

    @Option(help: "The keys to remove when memory is short: noeviction, volatile-ttl or allkeys-random.")
    var maxmemoryPolicy = Store.Eviction.none

    @Option(help: "How much memory incomplete requests of all clients may take, for example 1gb; 0 for no limit.")
    var maxmemoryClients = ByteCount(bytes: 256 * 1024 * 1024)

    @Option(help: "After how many seconds a silent client is closed; 0 for never.")
    var idleTimeout = 0.0

    @Option(help: "A file in which the newest events of the main loop are kept, for the command runloop-trace.")
    var flight: String?

    @OptionGroup(title: "Recording")
    var recording: RecordOptions

    @Option(help: "What to log: trace, debug, info, notice, warning, error or critical.")
    var logLevel = "info"

    func validate() throws {
        guard (1...64).contains(loops) else { throw ValidationError("--loops takes a number from 1 to 64") }
        guard maxClients > 0 else { throw ValidationError("--max-clients takes a number above zero") }
        guard idleTimeout >= 0, idleTimeout.isFinite else {
            throw ValidationError("--idle-timeout takes seconds, or 0 for never")
        }
        guard snapshot == nil || snapshot != log else {
            throw ValidationError("--snapshot and --log are two files")
        }
        guard loops == 1 || recording.record == nil else {
            throw ValidationError(
                "--record needs --loops 1: several loops share the table, in an order that is not recorded")
        }
        guard Logger.Level(rawValue: logLevel) != nil else {
            throw ValidationError("there is no log level \(logLevel)")
        }
    }

    var commandSettings: Commands.Settings {
        var settings = Commands.Settings()
        settings.maximumMemory = maxmemory.bytes
        settings.eviction = maxmemoryPolicy
        settings.loops = loops
        return settings
    }

    var serverSettings: Server.Settings {
        var settings = Server.Settings()
        settings.maximumClients = maxClients
        if maxmemoryClients.bytes > 0 { settings.inputBudget = Connection.InputBudget(bytes: maxmemoryClients.bytes) }
        // More than a year means forever, because a duration has no room for the largest numbers.
        if idleTimeout > 0 { settings.idleTimeout = .seconds(min(idleTimeout, 366 * 86_400)) }
        return settings
    }

    var connectionOptions: RunLoopUnix.Server.Options {
        var options = RunLoopUnix.Server.Options()
        options.maximumConnections = maxClients
        options.overflow = .refuse(answer: Array("-ERR max number of clients reached\r\n".utf8))
        return options
    }

    func run() throws {
        // Logging never waits for a reader.
        var log = Logger(label: "ttlstore", factory: { StreamLogHandler(label: $0, stream: StandardError.shared) })
        defer { StandardError.shared.flush(within: .seconds(1)) }
        log.logLevel = Logger.Level(rawValue: logLevel) ?? .info
        do {
            throw ExitCode(try withRecord(recording.mode) { try StoreDaemon(self, log).run() })
        } catch let refusal as StoreDaemon.Refusal {
            log.critical("\(refusal.text)")
            throw ExitCode(refusal.status)
        }
    }
}

extension AppendLog.Sync: ExpressibleByArgument {}
extension Store.Eviction: ExpressibleByArgument {}

/// A number of bytes in the notation of Redis: with k, m or g for thousands, and kb, mb or gb for powers of 1024.
struct ByteCount: ExpressibleByArgument {
    let bytes: Int

    init(bytes: Int) {
        self.bytes = bytes
    }

    init?(argument: String) {
        let text = argument.lowercased()
        let digits = text.prefix { $0.isASCII && $0.isNumber }
        let units = [
            "": 1, "b": 1, "k": 1000, "kb": 1 << 10, "m": 1_000_000, "mb": 1 << 20, "g": 1_000_000_000, "gb": 1 << 30,
        ]
        guard let number = Int(digits), let unit = units[String(text.dropFirst(digits.count))] else { return nil }
        let (product, overflow) = number.multipliedReportingOverflow(by: unit)
        guard !overflow else { return nil }
        bytes = product
    }

    var defaultValueDescription: String { "\(bytes)" }
}
