import ArgumentParser
import FoundationEssentials
import Logging
import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopUnix

@testable import Cron

/// A year of Cron in Berlin, with commands that take their time or too long, tables that change, crashes, stops, a disk that
/// is slow or full, and a clock that is set. What the commands have seen is written down, and ``YearCheck`` looks at it.
///
/// Unchecked: in a simulation only the thread whose turn it is gets here.
final class Year: @unchecked Sendable {
    static let path = "/etc/jobs"
    static let control = "/run/control"
    static let zone = TimeZone(identifier: "Europe/Berlin")!
    static let atOnce = 3
    static let grace = Duration.seconds(5)
    static let drain = Duration.seconds(30)
    /// 2026-01-01T00:00:00Z.
    static let start = RunLoop.WallTime(secondsSince1970: 1_767_225_600)

    let seed: UInt64
    private(set) var failures: [String] = []
    /// What had happened when the first of them was found.
    private(set) var picture = ""
    private(set) var diary = Diary()
    /// How often each job has run since the daemon's start.
    private var runsOfLife: [String: Int] = [:]
    /// What the daemon is to know, and the one before.
    private var table = YearTable()
    private var host: SimulatedHost!
    private var simulation: Simulation!
    private var random = SystemRandomNumberGenerator() as any RandomNumberGenerator

    init(seed: UInt64) {
        self.seed = seed
    }

    func fail(_ text: String) {
        if failures.isEmpty { picture = simulation.picture }
        if failures.count < 10 { failures.append(text) }
    }

    /// - Returns: the trace.
    func run(days: Int = 365, traced: Bool = false) -> [String] {
        withSimulation(seed: seed, traced: traced, startingAt: Self.start) { simulation in
            self.simulation = simulation
            random = simulation.loop.randomNumbers
            let arguments = [
                "--jobs", Self.path, "--state", "/var/state", "--control", Self.control, "--zone",
                Self.zone.identifier, "--at-once", "\(Self.atOnce)",
            ]
            host = SimulatedNetwork(simulation).addHost(
                "cron", addresses: ["10.1.0.1"], service: .init(watchdogPeriod: .seconds(86_400))
            ) { _ in
                let options = try Cron.parse(arguments)
                let log = Logger(label: "cron", factory: { _ in SwiftLogNoOpLogHandler() })
                let status = try CronDaemon(options, log).run()
                if status != 0 { throw ExitCode(status) }
            }
            host.install(program: "/bin/sh") { [self] process in try YearCommand(process, self).start() }
            diary.clockShows(Self.start, at: simulation.now)
            install(table)
            begin()
            // A little past the hour, when what ends and begins then is over.
            advance(by: .milliseconds(7_300))
            for _ in 0..<24 * days {
                advance(by: .seconds(3_600))
                look()
                if chance(of: isNightOfChange ? 2 : 50) { trouble() }
            }
            diary.daemonEnded(at: simulation.now, hasStopped: true)
            host.send(.terminate)
            advance(by: Self.drain + Self.grace + .seconds(2))
            diary.tables.append((simulation.now, JobTable.empty))
            for failure in YearCheck(diary).failures { fail(failure) }
            return simulation.trace
        }
    }

    // MARK: What commands tell

    /// - Returns: the number of the run.
    func commandBegan(_ run: Diary.Run) -> Int {
        let running = host.processes.count { $0.command.first == "/bin/sh" && !$0.isZombie }
        if running > Self.atOnce { fail("\(running) commands run at \(run.start)") }
        diary.runs.append(run)
        runsOfLife[run.name, default: 0] += 1
        return diary.runs.count - 1
    }

    /// What the daemon has counted of its runs is what there was since its start.
    func check(_ answer: [String], at instant: RunLoop.Instant) {
        // Of what was taken out and put in again it counts anew.
        for line in answer where !line.hasPrefix("weekly") {
            let words = line.split(separator: " ")
            guard words.count == 7, words[3].hasPrefix("runs=") else { continue }
            let begun = runsOfLife[String(words[0])] ?? 0
            let counted = Int(words[3].dropFirst(5))! + (words[1] == "running" ? 1 : 0)
            if counted != begun { fail("it has counted \(counted) of \(begun) runs at \(instant): \(line)") }
        }
        if answer.last != "OK" || answer.count < table.jobs.count { fail("an odd answer at \(instant): \(answer)") }
    }

    /// It was asked to end.
    func commandWasAsked(_ number: Int, at instant: RunLoop.Instant) {
        diary.runs[number].asked = instant
    }

    /// It has ended by itself.
    func commandEnded(_ number: Int, at instant: RunLoop.Instant) {
        diary.runs[number].end = instant
    }

    // MARK: Means

    private func advance(by duration: Duration) {
        simulation.advance(by: duration)
    }

    private func chance(of count: Int) -> Bool { Int.random(in: 0..<count, using: &random) == 0 }

    /// Whether the clocks of Berlin are changed within two hours.
    private var isNightOfChange: Bool {
        let hours = (host.wallTime - Self.start) / .seconds(3_600)
        // 2026-03-29T01:00:00Z and 2026-10-25T01:00:00Z.
        return [2_089.0, 7_129.0].contains { abs(hours - $0) < 2 }
    }

    private func seconds(_ range: ClosedRange<Int>) -> Duration {
        .milliseconds(Int.random(in: range.lowerBound * 1_000...range.upperBound * 1_000, using: &random))
    }

    /// Now and then the time is that of a date, or a moment later; or so much before.
    private func advanceToSomeDate(before margin: Duration = .zero) {
        let job = table.jobs.randomElement(using: &random)!
        let time = host.wallTime + margin
        guard chance(of: 2), let date = job.dates.next(after: time), date - time < .seconds(86_400) else {
            return advance(by: seconds(0...3_600))
        }
        advance(by: date - time + .milliseconds(Int.random(in: 0...1_500, using: &random)))
    }

    private func install(_ table: YearTable) {
        host.disk.install(Array(table.text.utf8), at: Self.path)
    }

    private func begin() {
        runsOfLife = [:]
        host.start()
        advance(by: .zero)
        diary.daemonBegan(at: simulation.now)
        if diary.tables.last?.table != table.parsed { diary.tables.append((simulation.now, table.parsed)) }
        if !host.isRunning { fail("it does not start: \(host.ending as Any)") }
    }

    /// What must be so at any time.
    private func look() {
        if !host.isRunning {
            fail("it has ended at \(simulation.now): \(host.ending as Any)")
            begin()
        }
        for process in host.processes where process.isZombie { fail("process \(process) is not reaped") }
    }
}

// MARK: - Trouble

extension Year {
    private func trouble() {
        switch Int.random(in: 0..<10, using: &random) {
        case 0...1: down { host.crash() }
        case 2: down { host.send(.kill) }
        case 3: stop()
        case 4: setClock()
        case 5...6: changeTable()
        case 7: breakTable()
        case 8: fillDisk()
        default:
            for operation in SimulatedDisk.Operation.allCases {
                host.disk.slow(
                    operation, by: chance(of: 2) ? .zero : .milliseconds(Int.random(in: 0...300, using: &random)))
            }
        }
    }

    /// The daemon ends, is down for a while, during which the table may change, and begins again.
    private func down(_ end: () -> Void) {
        advanceToSomeDate()
        end()
        stayDown(since: simulation.now, hasStopped: false)
    }

    private func stayDown(since end: RunLoop.Instant, hasStopped: Bool) {
        diary.daemonEnded(at: end, hasStopped: hasStopped)
        if chance(of: 3) {
            table.change(using: &random)
            install(table)
        }
        advance(by: chance(of: 2) ? seconds(0...10) : seconds(0...20_000))
        begin()
    }

    private func stop() {
        advanceToSomeDate()
        let began = simulation.now
        host.send(.terminate)
        while host.isRunning, simulation.now - began < Self.drain + Self.grace + .seconds(3) {
            advance(by: .milliseconds(500))
        }
        if host.isRunning { fail("it does not stop at \(began)") }
        if host.messages.last?.text != "STOPPING=1" { fail("it has not said that it stops at \(began)") }
        stayDown(since: began, hasStopped: true)
    }

    private func setClock() {
        let step = Duration.seconds(Int.random(in: -3_600...7_200, using: &random))
        host.wallTime = host.wallTime + step
        diary.clockShows(host.wallTime, at: simulation.now)
    }

    private func changeTable() {
        advanceToSomeDate()
        table.change(using: &random)
        diary.tables.append((simulation.now, table.parsed))
        let bytes = Array(table.text.utf8)
        switch Int.random(in: 0..<4, using: &random) {
        case 0:
            host.disk.install(bytes, at: Self.path)
            host.send(.hangUp)
        case 1: host.disk.install(bytes, at: Self.path)
        case 2:
            host.disk.install(bytes, at: Self.path + "~")
            host.disk.moveFile(at: Self.path + "~", to: Self.path)
        default:
            // So much happens that what happens to the table is lost.
            host.disk.fileEventLimit = 3
            for number in 0..<5 { host.disk.install([1], at: "/etc/other\(number)") }
            host.disk.install(bytes, at: Self.path)
            advance(by: .seconds(1))
            host.disk.fileEventLimit = 16_384
        }
        advance(by: .seconds(3))
    }

    /// Nothing changes, and the service manager is told that it is ready all the same.
    private func breakTable() {
        host.disk.install(Array((table.text + "broken * * *\n").utf8), at: Self.path)
        host.send(.hangUp)
        advance(by: seconds(3...10_000))
        if host.messages.last?.text != "READY=1" { fail("it is not ready after a reload at \(simulation.now)") }
        install(table)
        host.send(.hangUp)
        advance(by: .seconds(3))
    }

    private func fillDisk() {
        advanceToSomeDate(before: .seconds(5))
        let from = simulation.now
        host.disk.capacity = 0
        // It tries again every second.
        advance(by: seconds(1...600))
        host.disk.capacity = nil
        diary.fullDisks.append(from...simulation.now)
    }
}

extension JobTable {
    static let empty = try! JobTable([], of: "", in: .gmt)
}
