// A day of a schedule on virtual time: the production code, in milliseconds, the same each time.

import RunLoopKit
import RunLoopSimulation

/// Polls once a second, cleans up every hour, and writes a report at six in the evening.
final class Schedule {
    private(set) var polls = 0
    private(set) var cleanUps = 0
    private(set) var reports: [RunLoop.Instant] = []

    func begin(on loop: RunLoop) {
        let midnight = loop.now
        Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: true) { [unowned self] _ in polls += 1 }
        Timer.scheduledTimer(withTimeInterval: .seconds(3_600), repeats: true) { [unowned self] _ in cleanUps += 1 }
        loop.perform(at: midnight + .seconds(18 * 3_600)) { [unowned self] in reports.append(loop.now) }
    }
}

let begin = ContinuousClock.now
withSimulation { simulation in
    let schedule = Schedule()
    schedule.begin(on: simulation.loop)
    simulation.advance(by: .seconds(24 * 3_600))
    print("after a day: \(schedule.polls) polls, \(schedule.cleanUps) clean-ups, report at \(schedule.reports)")
    precondition(schedule.polls == 86_400 && schedule.cleanUps == 24 && schedule.reports.count == 1)
}
print("that took \(begin.duration(to: .now))")
