import ArgumentParser
import FoundationEssentials
import Logging
import RecordOptions
import RunLoopKit
import RunLoopRecording
import RunLoopUnix

@main
struct Cron: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "Cron", abstract: "Runs the commands of a file at their dates.")

    @Option(help: "The file of jobs; it is read again on SIGHUP and when it changes.")
    var jobs: String

    @Option(help: "The path of a Unix socket to listen on for commands.")
    var control: String?

    @Option(help: "The file that keeps up to which date each job has been dealt with.")
    var state: String?

    @Option(help: "The zone whose clocks count, for example Europe/Berlin; the system's unless given.")
    var zone = Zone(zone: .current)

    @Option(help: "How many commands may run at once.")
    var atOnce = 4

    @Option(help: "How long a command that was asked to end has until it is killed.")
    var grace = TimeSpan("5s")!

    @Option(help: "The time that running commands have at the stop before they are asked to end.")
    var drain = TimeSpan("30s")!

    @OptionGroup(title: "Recording")
    var recording: RecordOptions

    @Option(help: "What to log: trace, debug, info, notice, warning, error or critical.")
    var logLevel = "info"

    func validate() throws {
        guard (1...1_000).contains(atOnce) else { throw ValidationError("--at-once takes a number from 1 to 1000") }
        guard jobs != state else { throw ValidationError("--jobs and --state are two files") }
        guard Logger.Level(rawValue: logLevel) != nil else {
            throw ValidationError("there is no log level \(logLevel)")
        }
    }

    var schedulerSettings: Scheduler.Settings { Scheduler.Settings(atOnce: atOnce, grace: grace.duration) }

    func run() throws {
        // Logging never waits for a reader.
        var log = Logger(label: "cron", factory: { StreamLogHandler(label: $0, stream: StandardError.shared) })
        defer { StandardError.shared.flush(within: .seconds(1)) }
        log.logLevel = Logger.Level(rawValue: logLevel) ?? .info
        do {
            throw ExitCode(try withRecord(recording.mode) { try CronDaemon(self, log).run() })
        } catch let refusal as CronDaemon.Refusal {
            log.critical("\(refusal.text)")
            throw ExitCode(refusal.status)
        }
    }
}

/// A time zone given by its name.
struct Zone: ExpressibleByArgument {
    let zone: TimeZone

    init(zone: TimeZone) {
        self.zone = zone
    }

    init?(argument: String) {
        guard let zone = TimeZone(identifier: argument) else { return nil }
        self.zone = zone
    }

    var defaultValueDescription: String { zone.identifier }
}
