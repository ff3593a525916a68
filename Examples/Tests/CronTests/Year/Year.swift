import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopUnix

@testable import Cron

/// A year of Cron in Berlin, with slow commands, tables that change, crashes, stops, a disk that is slow or full, and a
/// clock that is set.
final class Year {
    /// 2026-01-01T00:00:00Z.
    static let start = RunLoop.WallTime(secondsSince1970: 1_767_225_600)

    let seed: UInt64
    private(set) var cron: WatchedCron!
    /// The moments that the year has met.
    private(set) var marks = Simulation.Marks()
    private var table = YearTable()
    private var random = SystemRandomNumberGenerator() as any RandomNumberGenerator

    init(seed: UInt64) {
        self.seed = seed
    }

    private var host: SimulatedHost { cron.host }
    private var simulation: Simulation { cron.simulation }

    /// - Returns: the trace of the year.
    func run(days: Int = 365, traced: Bool = false) -> [String] {
        withSimulation(seed: seed, traced: traced, startingAt: Self.start) { simulation in
            defer { marks = simulation.marks }
            random = simulation.loop.randomNumbers
            cron = WatchedCron(simulation, at: Self.start, table.text, atOnce: 3) { process, seconds in
                var random = process.loop.randomNumbers
                return Int.random(in: seconds, using: &random)
            }
            // A little past the hour, when the commands that end and begin then are done.
            advance(by: .milliseconds(7_300))
            for _ in 0..<24 * days {
                advance(by: .seconds(3_600))
                cron.look()
                if !host.isRunning { cron.begin() }
                if chance(of: isNightOfChange ? 2 : 50) { trouble() }
            }
            cron.end()
            for failure in Nights.failures(of: cron.table.jobs) { cron.fail(failure) }
            return simulation.trace
        }
    }

    // MARK: Means

    private func advance(by duration: Duration) {
        simulation.advance(by: duration)
    }

    private func chance(of count: Int) -> Bool { Int.random(in: 0..<count, using: &random) == 0 }

    /// `true` if the clocks of Berlin are changed within two hours.
    private var isNightOfChange: Bool {
        let hours = (host.wallTime - Self.start) / .seconds(3_600)
        // 2026-03-29T01:00:00Z and 2026-10-25T01:00:00Z.
        return [2_089.0, 7_129.0].contains { abs(hours - $0) < 2 }
    }

    private func seconds(_ range: ClosedRange<Int>) -> Duration {
        .milliseconds(Int.random(in: range.lowerBound * 1_000...range.upperBound * 1_000, using: &random))
    }

    /// Advances by a random time; sometimes to a job's date or a moment later, or to `margin` before it.
    private func advanceToSomeDate(before margin: Duration = .zero) {
        let job = cron.table.jobs.randomElement(using: &random)!
        let time = host.wallTime + margin
        guard chance(of: 2), let date = job.dates.next(after: time), date - time < .seconds(86_400) else {
            return advance(by: seconds(0...3_600))
        }
        advance(by: date - time + .milliseconds(Int.random(in: 0...1_500, using: &random)))
    }

    private func changeTable() {
        table.change(using: &random)
        cron.tableChanges(to: WatchedCron.table(of: table.text))
    }

    private func install(_ text: String) {
        host.disk.install(Array(text.utf8), at: WatchedCron.path)
    }
}

// MARK: - Trouble

extension Year {
    private func trouble() {
        switch Int.random(in: 0..<10, using: &random) {
        case 0...1: down { host.crash() }
        case 2: down { host.send(.kill) }
        case 3: stop()
        case 4: cron.setClock(to: host.wallTime + .seconds(Int.random(in: -3_600...7_200, using: &random)))
        case 5...6: haveNewTable()
        case 7: breakTable()
        case 8: fillDisk()
        default:
            for operation in SimulatedDisk.Operation.allCases {
                host.disk.slow(
                    operation, by: chance(of: 2) ? .zero : .milliseconds(Int.random(in: 0...300, using: &random)))
            }
        }
    }

    /// Ends the daemon, leaves it down for a while, during which the table may change, and starts it again.
    private func down(_ end: () -> Void) {
        advanceToSomeDate()
        end()
        cron.serviceEnds(hasStopped: false)
        stayDown()
    }

    private func stayDown() {
        if chance(of: 3) {
            changeTable()
            install(table.text)
        }
        advance(by: chance(of: 2) ? seconds(0...10) : seconds(0...20_000))
        cron.begin()
    }

    private func stop() {
        advanceToSomeDate()
        let began = simulation.now
        cron.serviceEnds(hasStopped: true)
        host.send(.terminate)
        while host.isRunning, simulation.now - began < WatchedCron.drain + WatchedCron.grace + .seconds(3) {
            advance(by: .milliseconds(500))
        }
        if host.isRunning { cron.fail("it does not stop at \(began)") }
        if host.messages.last?.text != "STOPPING=1" { cron.fail("it has not said that it stops at \(began)") }
        stayDown()
    }

    private func haveNewTable() {
        advanceToSomeDate()
        changeTable()
        switch Int.random(in: 0..<4, using: &random) {
        case 0:
            install(table.text)
            host.send(.hangUp)
        case 1: install(table.text)
        case 2:
            host.disk.install(Array(table.text.utf8), at: WatchedCron.path + "~")
            host.disk.moveFile(at: WatchedCron.path + "~", to: WatchedCron.path)
        default:
            // There are so many events that the change of the table is lost.
            host.disk.fileEventLimit = 3
            for number in 0..<5 { host.disk.install([1], at: "/etc/other\(number)") }
            install(table.text)
            advance(by: .seconds(1))
            host.disk.fileEventLimit = 16_384
        }
        advance(by: .seconds(3))
    }

    /// Breaks the table: the jobs stay, and the daemon reports all the same that it is ready.
    private func breakTable() {
        install(table.text + "broken * * *\n")
        host.send(.hangUp)
        advance(by: seconds(3...10_000))
        if host.messages.last?.text != "READY=1" { cron.fail("it is not ready after a reload at \(simulation.now)") }
        install(table.text)
        host.send(.hangUp)
        advance(by: .seconds(3))
    }

    private func fillDisk() {
        advanceToSomeDate(before: .seconds(5))
        let from = simulation.now
        host.disk.capacity = 0
        // The daemon tries again every second.
        advance(by: seconds(1...600))
        host.disk.capacity = nil
        cron.diskWasFull(since: from)
    }
}
