import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopUnix

@testable import Cron

/// Six minutes of Cron around half past two at night, with a few jobs.
///
/// The night is open, and in the first half also the length of each command, and a change of the clock. Also open are
/// the times when the host crashes, when the daemon is stopped, and when it gets another table.
struct ExploredCron {
    private static let table = """
        minutes   * * * * *   limit=90s     work 5 100
        each      every 1m    missed=each   work 5 100
        stubborn  */2 * * * * limit=30s     stubborn 5 40
        night     30 2 * * *                work 5 10

        """
    private static let otherTable = table + "asks      31 2 * * *                ask\n"

    /// The starts, all shortly before half past two: in winter, and where the clock shows it for the second time, for
    /// the first time, and not at all.
    private static let starts = [
        "2026-01-10T01:29:23Z", "2026-10-25T01:29:23Z", "2026-10-25T00:29:23Z", "2026-03-29T00:59:23Z",
    ]

    /// The beginning of a time in which missed dates can be made up for.
    private static let calm = RunLoop.Instant(nanoseconds: 160_000_000_000)

    /// A broken promise.
    struct Broken: Error, CustomStringConvertible {
        let description: String
    }

    private let simulation: Simulation
    private let cron: WatchedCron

    init(_ simulation: Simulation) {
        self.simulation = simulation
        let start = time(simulation.choice("the start", of: Self.starts))
        cron = WatchedCron(simulation, at: start, Self.table, atOnce: 2) { process, seconds in
            guard simulation.now < Self.calm else { return seconds.lowerBound }
            let possible = [seconds.lowerBound, seconds.upperBound / 2, seconds.upperBound]
            return simulation.choice("how long \(process.environment["CRON_JOB"]!) takes", of: possible)
        }
        cron.host.disk.slow(.sync, by: .milliseconds(50))
    }

    func run() throws {
        mayBeTroubled()
        let step = simulation.choice("by how much the clock is set", of: [0, -40, 100])
        let moment = simulation.choice("when it is set", of: Array(1...5))
        for number in 1...12 {
            simulation.advance(by: .seconds(30))
            cron.look()
            // The service manager starts the daemon again.
            if !cron.host.isRunning { cron.begin() }
            // Not at the moment when the daemon begins, because its view of that moment is not known.
            simulation.advance(by: .seconds(1))
            if step != 0, number == moment { cron.setClock(to: cron.host.wallTime + .seconds(step)) }
        }
        cron.end()
        for run in cron.diary.runs where run.name == "night" {
            let seconds = run.date.secondsSince1970
            let isRight = seconds == Nights.halfPastTwo(after: seconds - seconds % 86_400)
            if !isRight { cron.fail("it is not half past two at \(run.date), or not for the first time") }
        }
        if let failure = cron.failures.first { throw Broken(description: failure) }
    }

    private func mayBeTroubled() {
        simulation.mayHappen("the host crashes") { [cron] in
            cron.serviceEnds(hasStopped: false)
            cron.host.crash()
        }
        simulation.mayHappen("the daemon is stopped") { [cron] in
            cron.serviceEnds(hasStopped: true)
            cron.host.send(.terminate)
        }
        simulation.mayHappen("the table changes") { [cron] in
            cron.tableChanges(to: WatchedCron.table(of: Self.otherTable))
            cron.host.disk.install(Array(Self.otherTable.utf8), at: WatchedCron.path)
        }
    }
}
