package import RunLoopKit
package import RunLoopSimulation

/// The events of a simulation, a line each, with the virtual time in seconds: "2.0 tick 1". Any thread of the
/// simulation.
package final class Story: Sendable {
    package let simulation: Simulation
    private let log = Log<String>()

    package init(_ simulation: Simulation) {
        self.simulation = simulation
    }

    package var lines: [String] { log.entries }

    package func tell(_ what: String) {
        log("\((simulation.now - ns(0)) / .seconds(1)) \(what)")
    }
}

/// Runs `body` on virtual time, with a story to tell.
package func withStory(_ body: (Simulation, Story) throws -> Void) rethrows {
    try withSimulation { try body($0, Story($0)) }
}

extension Story {
    /// The usual owner of a timer: an object that counts ticks, invalidates its timer in its deinit, and logs both.
    package final class Owner {
        package var timer: Timer?
        package private(set) var ticks = 0
        private let story: Story

        package init(_ story: Story) {
            self.story = story
        }

        deinit {
            timer?.invalidate()
            story.tell("owner gone")
        }

        package func tick(_ timer: Timer) {
            ticks += 1
            story.tell("tick \(ticks)")
        }
    }
}
