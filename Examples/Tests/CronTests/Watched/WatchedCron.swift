import ArgumentParser
import FoundationEssentials
import Logging
import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopUnix

@testable import Cron

/// A Cron in Berlin, on a simulated host. A diary records the actions of the daemon and its commands, and
/// ``DiaryCheck`` checks it at the end.
///
/// Unchecked: in a simulation only the thread whose turn it is gets here.
final class WatchedCron: @unchecked Sendable {
    static let path = "/etc/jobs"
    static let control = "/run/control"
    static let zone = TimeZone(identifier: "Europe/Berlin")!
    static let grace = Duration.seconds(5)
    static let drain = Duration.seconds(30)

    let simulation: Simulation
    private(set) var host: SimulatedHost!
    private(set) var diary = Diary()
    private(set) var failures: [String] = []
    /// The history when the first failure was found.
    private(set) var picture = ""
    /// The table that the daemon should have.
    private(set) var table: JobTable
    /// Chooses the duration of a command from the range in its line.
    let chooseSeconds: @Sendable (SimulatedProcess, ClosedRange<Int>) -> Int
    /// `true` while the daemon runs, and was not asked to stop.
    private(set) var isServing = false
    private let atOnce: Int
    /// The number of runs of each job since the daemon's start.
    private var runsOfLife: [String: Int] = [:]

    /// Creates a Cron whose daemon has begun.
    ///
    /// - Parameters:
    ///   - time: the time on the host's clock.
    ///   - text: the contents of the file of jobs.
    init(
        _ simulation: Simulation, at time: RunLoop.WallTime, _ text: String, atOnce: Int,
        _ chooseSeconds: @escaping @Sendable (SimulatedProcess, ClosedRange<Int>) -> Int
    ) {
        (self.simulation, self.atOnce, self.chooseSeconds) = (simulation, atOnce, chooseSeconds)
        table = Self.table(of: text)
        let arguments = [
            "--jobs", Self.path, "--state", "/var/state", "--control", Self.control, "--zone", Self.zone.identifier,
            "--at-once", "\(atOnce)",
        ]
        host = SimulatedNetwork(simulation).addHost(
            "cron", addresses: ["10.1.0.1"], service: .init(watchdogPeriod: .seconds(86_400))
        ) { _ in
            let options = try Cron.parse(arguments)
            let log = Logger(label: "cron", factory: { _ in SwiftLogNoOpLogHandler() })
            let status = try CronDaemon(options, log).run()
            if status != 0 { throw ExitCode(status) }
        }
        host.install(program: "/bin/sh") { [self] process in try WatchedCommand(process, self).start() }
        host.disk.install(Array(text.utf8), at: Self.path)
        setClock(to: time)
        begin()
    }

    static func table(of text: String) -> JobTable { try! JobTable(text.utf8, of: path, in: zone) }

    func fail(_ text: String) {
        if failures.isEmpty { picture = simulation.picture }
        if failures.count < 10 { failures.append(text) }
    }

    // MARK: The daemon

    /// Starts the daemon.
    func begin() {
        runsOfLife = [:]
        diary.daemonBegan(at: simulation.now)
        isServing = true
        if diary.tables.last?.table != table { diary.tables.append((simulation.now, table)) }
        host.start()
        simulation.advance(by: .zero)
        look()
    }

    /// Notes that the daemon ends now, or was asked to stop.
    func serviceEnds(hasStopped: Bool) {
        guard isServing else { return }
        isServing = false
        diary.daemonEnded(at: simulation.now, hasStopped: hasStopped)
    }

    /// Notes the table that the daemon should have from now on, or from its next start.
    func tableChanges(to table: JobTable) {
        self.table = table
        if isServing { diary.tables.append((simulation.now, table)) }
    }

    func setClock(to time: RunLoop.WallTime) {
        host.wallTime = time
        diary.clockShows(time, at: simulation.now)
    }

    func diskWasFull(since instant: RunLoop.Instant) {
        diary.fullDisks.append(instant...simulation.now)
    }

    /// Checks the conditions that hold at any time.
    func look() {
        if isServing, !host.isRunning {
            fail("it has ended at \(simulation.now): \(host.ending as Any)")
            serviceEnds(hasStopped: false)
        }
        for process in host.processes where process.isZombie { fail("process \(process) is not reaped") }
    }

    /// Stops the daemon, and checks the diary.
    func end() {
        serviceEnds(hasStopped: true)
        host.send(.terminate)
        simulation.advance(by: Self.drain + Self.grace + .seconds(2))
        diary.tables.append((simulation.now, Self.table(of: "")))
        for failure in DiaryCheck(diary).failures { fail(failure) }
    }

    // MARK: Reports of commands

    /// - Returns: the number of the run.
    func commandBegan(_ run: Diary.Run) -> Int {
        let running = host.processes.count { $0.command.first == "/bin/sh" && !$0.isZombie }
        if running > atOnce { fail("\(running) commands run at \(run.start)") }
        diary.runs.append(run)
        runsOfLife[run.name, default: 0] += 1
        return diary.runs.count - 1
    }

    /// Checks that the daemon's counts agree with the runs since its start.
    func check(_ answer: [String], at instant: RunLoop.Instant) {
        // A job that was removed and added again is counted anew.
        for line in answer where !line.hasPrefix("weekly") {
            let words = line.split(separator: " ")
            guard words.count == 7, words[3].hasPrefix("runs=") else { continue }
            let begun = runsOfLife[String(words[0])] ?? 0
            let counted = Int(words[3].dropFirst(5))! + (words[1] == "running" ? 1 : 0)
            if counted != begun { fail("it has counted \(counted) of \(begun) runs at \(instant): \(line)") }
        }
        // While the daemon stops, it forgets jobs that do not run, and answers no new clients.
        let isWhole = answer.last == "OK" && answer.count >= table.jobs.count
        if isServing, !isWhole { fail("an odd answer at \(instant): \(answer)") }
    }

    /// Notes that a command was asked to end.
    func commandWasAsked(_ number: Int, at instant: RunLoop.Instant) {
        diary.runs[number].asked = instant
    }

    /// Notes that a command has ended by itself.
    func commandEnded(_ number: Int, at instant: RunLoop.Instant) {
        diary.runs[number].end = instant
    }
}
