package import RunLoopExploration
internal import RunLoopKit
internal import RunLoopSimulation
internal import Synchronization

/// Plays a scenario with drags that may begin at any moment, and looks for one that makes a timer late.
package struct ScenarioExplorer: Sendable {
    private let scenario: Scenario
    private let drag: (mode: String, duration: Int64, most: Int)
    private let latest: Int64

    /// - Parameters:
    ///   - mode: the mode in which the loop runs during a drag.
    ///   - duration: the duration of a drag, in nanoseconds.
    ///   - most: the largest number of drags.
    ///   - latest: the longest allowed delay of a timer, in nanoseconds.
    package init(_ scenario: Scenario, mode: String, lasting duration: Int64, atMost most: Int, latest: Int64) {
        self.scenario = scenario
        drag = (mode, duration, most)
        self.latest = latest
    }

    package func explore(_ exploration: Exploration) -> Exploration.Result {
        exploration.run(check)
    }

    /// Returns a stepper through one schedule.
    package func stepper(_ token: ScheduleToken) -> Exploration.Stepper {
        Exploration.Stepper(Exploration(), token, check)
    }

    private func check(_ simulation: Simulation) throws {
        for event in play(in: simulation) {
            guard case .fire(let name, _, _, let due, _, manual: false) = event.kind, event.t - due > latest else {
                continue
            }
            throw Late(name: name, due: due, time: event.t)
        }
    }

    /// Returns the events of playing one schedule.
    package func replay(_ token: ScheduleToken) -> [ScenarioEvent] {
        let events = Mutex<[ScenarioEvent]>([])
        _ = Exploration().replay(token) { simulation in
            let played = play(in: simulation)
            events.withLock { $0 = played }
        }
        return events.withLock(\.self)
    }

    private func play(in simulation: Simulation) -> [ScenarioEvent] {
        let events = Mutex<[ScenarioEvent]>([])
        let performance = Performance(scenario, on: Testbed(simulation)) { event in events.withLock { $0.append(event) }
        }
        simulation.mayDrag(
            for: .nanoseconds(drag.duration), in: RunLoop.Mode(drag.mode), atMost: drag.most
        ) { [unowned performance] drag in
            performance.emit(.runBegin(mode: self.drag.mode))
            drag()
            performance.emit(.runEnd(mode: self.drag.mode))
        }
        performance.run()
        return events.withLock(\.self)
    }
}

/// A timer that fired too late.
private struct Late: Error, CustomStringConvertible {
    let name: String
    let due: Int64
    let time: Int64

    var description: String {
        "timer \(name) fires at \(decimalSeconds(time)) s, and was due at \(decimalSeconds(due)) s"
    }
}
