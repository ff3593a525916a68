internal import RunLoopKit
internal import Synchronization

/// Plays a scenario on a real loop or on virtual time, and reports its events.
///
/// The player is built on the library's public interface, with one exception: on a scaled clock a second of a display
/// is scaled too, and only this package can make such a `FrameClock` and `FrameRateMeter`.
package struct ScenarioPlayer: Sendable {
    private let scenario: Scenario
    private let clock: Testbed.Clock

    package init(_ scenario: Scenario, clock: Testbed.Clock = .virtual) {
        self.scenario = scenario
        self.clock = clock
    }

    /// Plays the scenario to its end, on a loop of its own.
    ///
    /// - Parameter onEvent: called with each event as it happens, on its thread, one at a time.
    package func play(_ onEvent: @escaping @Sendable (ScenarioEvent) -> Void) {
        Testbed.open(on: clock) { [scenario] testbed in
            Performance(scenario, on: testbed, onEvent).run()
        }
    }

    /// Plays the scenario to its end, on a loop of its own.
    ///
    /// - Returns: all events, in order.
    package func play() -> [ScenarioEvent] {
        let events = Mutex<[ScenarioEvent]>([])
        play { event in events.withLock { $0.append(event) } }
        return events.withLock { $0 }
    }
}
