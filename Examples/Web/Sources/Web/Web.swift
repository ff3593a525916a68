import ArgumentParser
import Logging
import RunLoopRecording
import RunLoopUnix
import WebServer

@main
struct Web: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Serves HTTP/1.1, HTTP/2 and a chat over WebSocket.")

    @Option(help: "The address to listen on, unless the service manager has opened a socket.")
    var address = "127.0.0.1"

    @Option(help: "The TCP port; 0 lets the system choose.")
    var port = 8080

    @Option(help: "How many loops serve connections, each on a thread of its own.")
    var threads = LoopGroup.processorCount

    @Option(help: "The directory of uploaded files.")
    var uploads = "uploads"

    @Option(help: "A file with limits, such as {\"connections\": 500, \"idleSeconds\": 30}; read again on SIGHUP.")
    var limits: String?

    @Option(help: "The certificate chain, in PEM; read again on SIGHUP. Without it there is no TLS.")
    var certificate: String?

    @Option(help: "The key of the certificate, in PEM.")
    var key: String?

    @Option(help: "The path of a socket for runloop-top, which shows what the loops do. Without it there is none.")
    var console: String?

    @Flag(help: "Serve the same as a page, /console, to those who have its key: #KEY in its address, from PATH.key.")
    var consolePage = false

    @Option(help: "How many seconds a stop waits for requests in progress.")
    var drain = 30

    @Option(help: "A file in which the run is recorded.")
    var record: String?

    @Option(help: "The record of a run, which the program repeats.")
    var replay: String?

    @Option(help: "What to log: trace, debug, info, notice, warning, error or critical.")
    var logLevel = "info"

    func validate() throws {
        guard record == nil || replay == nil else { throw ValidationError("give --record or --replay, not both") }
        guard (1...64).contains(threads) else { throw ValidationError("--threads takes a number from 1 to 64") }
        guard (0...65_535).contains(port) else { throw ValidationError("--port takes a number from 0 to 65535") }
        guard (certificate == nil) == (key == nil) else { throw ValidationError("--certificate and --key go together") }
        guard !consolePage || console != nil else { throw ValidationError("--console-page needs --console") }
        guard (0...3_600).contains(drain) else { throw ValidationError("--drain takes seconds, at most an hour") }
        guard Logger.Level(rawValue: logLevel) != nil else {
            throw ValidationError("there is no log level \(logLevel)")
        }
    }

    var settings: Settings {
        var settings = Settings()
        (settings.address, settings.port, settings.threads) = (address, port, threads)
        (settings.uploads, settings.limits, settings.drainTime) = (uploads, limits, .seconds(drain))
        (settings.console, settings.hasConsolePage) = (console, consolePage)
        if let certificate, let key { settings.certificate = (certificate, key) }
        return settings
    }

    func run() throws {
        // Logging never waits for a reader.
        var log = Logger(label: "web", factory: { StreamLogHandler(label: $0, stream: StandardError.shared) })
        defer { StandardError.shared.flush(within: .seconds(1)) }
        log.logLevel = Logger.Level(rawValue: logLevel) ?? .info
        do {
            let mode = RecordMode(record: record, replay: replay)
            throw ExitCode(try withRecord(mode) { try WebDaemon(settings, log).run() })
        } catch let refusal as WebDaemon.Refused {
            log.critical("\(refusal)")
            throw ExitCode(refusal.status)
        }
    }
}
