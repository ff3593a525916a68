import RunLoopKit
import RunLoopSimulation
import TestSupport

/// The events of a simulation, a line each, with the virtual time in seconds: "2.0 tick 1". Any thread of the
/// simulation.
final class Story: Sendable {
    let simulation: Simulation
    private let log = Log<String>()

    init(_ simulation: Simulation) {
        self.simulation = simulation
    }

    var lines: [String] { log.entries }

    func tell(_ what: String) {
        log("\((simulation.now - ns(0)) / .seconds(1)) \(what)")
    }
}

/// Runs `body` on virtual time, with a story to tell.
func withStory(_ body: (Simulation, Story) throws -> Void) rethrows {
    try withSimulation { try body($0, Story($0)) }
}

extension Story {
    /// The owner of a timer in the documents: an object that counts ticks, invalidates its timer in its deinit, and
    /// logs both.
    final class Owner {
        var timer: Timer?
        private(set) var ticks = 0
        private let story: Story

        init(_ story: Story) {
            self.story = story
        }

        deinit {
            timer?.invalidate()
            story.tell("owner gone")
        }

        func tick(_ timer: Timer) {
            ticks += 1
            story.tell("tick \(ticks)")
        }
    }
}
