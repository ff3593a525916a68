internal import RunLoopKit
internal import Synchronization

/// Plays a scenario on a real loop or on virtual time, and says what happened.
///
/// It is built on the library's public interface alone.
public struct ScenarioPlayer: Sendable {
    private let scenario: Scenario
    private let clock: Stage.Clock

    public init(_ scenario: Scenario, clock: Stage.Clock = .virtual) {
        self.scenario = scenario
        self.clock = clock
    }

    /// Plays the scenario to its end, on a loop of its own.
    ///
    /// - Parameter onEvent: called with each event as it happens, on the thread on which it does, one at a time.
    public func play(_ onEvent: @escaping @Sendable (ScenarioEvent) -> Void) {
        Stage.open(on: clock) { [scenario] stage in
            Performance(scenario, on: stage, onEvent).run()
        }
    }

    /// Plays the scenario to its end, on a loop of its own.
    ///
    /// - Returns: all events, in order.
    public func play() -> [ScenarioEvent] {
        let events = Mutex<[ScenarioEvent]>([])
        play { event in events.withLock { $0.append(event) } }
        return events.withLock { $0 }
    }
}
