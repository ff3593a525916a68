import RunLoopKit
import Scenarios
import Synchronization

/// A delayed call after five seconds is cancelled at three, by its target. The call is never made, and the target,
/// which only the call has kept, is deallocated at the cancellation.
@Sendable
func cancelledCall(on clock: Testbed.Clock) -> [Observation] {
    let observations = Mutex<[Observation]>([])
    Testbed.open(on: clock) { testbed in
        let (loop, times) = (testbed.loop, testbed.times)
        let note = { [unowned loop] (event: String, mark: ScenarioEvent.Kind?) in
            observations.withLock { $0.append(.init(t: times.time(of: loop.now), event: event, mark: mark)) }
        }
        weak let target = scheduleCall(in: loop, afterDelay: times.duration(5_000_000_000), note)
        loop.perform(at: times.instant(3_000_000_000)) {
            guard let target else { return note("the target was gone too early", nil) }
            loop.cancelPreviousPerformRequests(withTarget: target)
            note("the call is cancelled", .cancelled(name: "call"))
        }
        let idle = CustomSource()
        loop.add(idle, forMode: .default)
        loop.run(in: .default, until: times.instant(6_000_000_000))
        idle.invalidate()
    }
    return observations.withLock { $0 }
}

/// The lanes of its picture.
let oneCall = Scenario(
    duration: 6_000_000_000,
    timers: [.init(name: "call", first: 5_000_000_000, target: .init(name: "target", hold: .strong))])

private typealias Note = (_ event: String, _ mark: ScenarioEvent.Kind?) -> Void

/// Schedules a call, which alone keeps the target.
private func scheduleCall(in loop: RunLoop, afterDelay delay: Duration, _ note: @escaping Note) -> Target {
    let target = Target(note)
    loop.perform(Target.act, target: target, afterDelay: delay)
    return target
}

private final class Target {
    private let note: Note

    init(_ note: @escaping Note) {
        self.note = note
    }

    deinit {
        note("target deinits", .deinit(name: "target"))
    }

    func act() {
        note("the call is made", .tick(name: "call", count: 1, mode: "default", remaining: nil))
    }
}
