import RunLoopCore
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@Suite("Marks")
struct MarkTests {
    @Test("a mark counts how often it was met; one whose condition never holds has the count zero")
    func counts() {
        let simulation = withSimulation { simulation in
            for number in 0..<10 { simulation.sometimes("a number was odd", if: number % 2 == 1) }
            simulation.sometimes("a number was negative", if: false)
            simulation.sometimes("the loop was left")
            return simulation
        }
        let marks = simulation.marks
        #expect(marks.counts == ["a number was odd": 5, "a number was negative": 0, "the loop was left": 1])
        #expect(marks["a number was odd"] == 5 && marks["nobody has heard of it"] == 0)
        #expect(marks.unmet == ["a number was negative"])
        #expect(
            marks.missing(of: ["unknown", "a number was odd", "a number was negative"])
                == ["unknown", "a number was negative"])
    }

    @Test("a program that does not know the simulation sets marks on any of its threads")
    func programs() {
        withSimulation { simulation in
            LoopThread(name: "worker") { loop in
                RunLoop.sometimes("a worker started")
                loop.perform { RunLoop.sometimes("a worker ended", if: loop.isVirtual) }
            }.join()
            simulation.loop.task { RunLoop.sometimes("a task ran", if: false) }
            simulation.runUntilIdle()
            #expect(simulation.marks.counts == ["a worker started": 1, "a worker ended": 1, "a task ran": 0])
        }
    }

    @Test("on real time nothing is counted, and no condition is computed")
    func real() {
        let asked = Counter()
        @Sendable func condition() -> Bool { asked.add() > 0 }
        LoopThread(name: "real") { _ in RunLoop.sometimes("it was asked", if: condition()) }.join()
        onThread { RunLoop.sometimes("it was asked", if: condition()) }
        #expect(asked.value == 0)
    }

    @Test("marks do not show in the trace, and change no picture")
    func trace() {
        func run(isMarked: Bool) -> [String] {
            withSimulation(traced: true) { simulation in
                simulation.loop.perform(afterDelay: .seconds(1)) { if isMarked { simulation.sometimes("it fired") } }
                simulation.runUntilIdle()
                return simulation.trace + [simulation.picture]
            }
        }
        #expect(run(isMarked: true) == run(isMarked: false))
    }

    @Test("a clock that is set back is a mark of the library; one that is set forward, or sleeps, is none")
    func clock() {
        withSimulation { simulation in
            simulation.wallTime = simulation.wallTime + .seconds(10)
            simulation.sleepMachine(for: .seconds(10))
            simulation.setWallClockDrift(billionths: -500_000_000)
            #expect(simulation.marks.counts.isEmpty)
            simulation.wallTime = simulation.wallTime + .nanoseconds(-1)
            #expect(simulation.marks.counts == ["a clock was set back": 1])
        }
    }

    @Test("counts of several simulations are added, and listed by name")
    func sum() {
        var marks = Simulation.Marks(["b": 2, "a": 10])
        marks.add(Simulation.Marks(["b": 3, "c": 0]))
        #expect(marks.counts == ["a": 10, "b": 5, "c": 0])
        #expect("\(marks)" == "10 a\n 5 b\n 0 c")
    }
}
