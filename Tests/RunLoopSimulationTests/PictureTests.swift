import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@Suite("Simulations: pictures")
struct PictureTests {
    @Test("nothing has happened yet")
    func nothing() {
        withSimulation(seed: 3, traced: true) { simulation in
            #expect(simulation.picture == "seed 3, at 0.000000000\nnothing has happened")
        }
    }

    @Test("each thread has a lane with its whole name, equal times are written once, and a long text is cut")
    func threads() {
        withSimulation(traced: true) { simulation in
            let timer = Timer.scheduledTimer(withTimeInterval: .seconds(2), repeats: true) { _ in }
            timer.name = "T"
            let worker = LoopThread(name: "a worker with a long name") { loop in
                loop.perform(at: loop.now + .seconds(2)) { simulation.note("halfway\nthere") }
                loop.perform(at: loop.now + .seconds(3)) {
                    simulation.note(String(repeating: "0123456789", count: 12))
                }
            }
            simulation.advance(by: .seconds(4))
            let origin = "RunLoopSimulationTests/PictureTests.swift"
            let line = Int(timer.origin.line)
            #expect(
                simulation.picture == """
                    seed 0, at 4.000000000
                           time  main
                                 │    a worker with a long name
                    2.000000000  ●    │    timer "T" (\(origin):\(line))
                                 │    ●    delayed call (\(origin):\(line + 3))
                                 │    ●    halfway there
                    3.000000000  │    ●    delayed call (\(origin):\(line + 4))
                                 │    ✕    012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345…
                    4.000000000  ●         timer "T" (\(origin):\(line))
                    """)
            let widths = simulation.picture.split(separator: "\n").map(\.count)
            #expect(widths.max() == 120)
            withExtendedLifetime(worker) {}
        }
    }

    @Test("the last forty events are there, and how many there were before; also when it is over")
    func many() {
        for count in [40, 41, 1_000] {
            let simulation = withSimulation(seed: 9) { simulation in
                for number in 1...count {
                    simulation.advance(by: .seconds(1))
                    simulation.note("\(number)")
                }
                return simulation
            }
            let lines = simulation.picture.split(separator: "\n").map(String.init)
            let earlier = count - 40
            #expect(lines[0] == "seed 9, at \(count).000000000")
            #expect(lines.count == (earlier > 0 ? 44 : 43))
            if earlier > 0 {
                #expect(lines[1].hasSuffix("⋮  after \(earlier) earlier event\(earlier == 1 ? "" : "s")"))
            }
            #expect(lines[lines.count - 2].hasSuffix("\(count).000000000  ●     \(count)"))
            #expect(lines.last == "Timers are not shown, because the simulation is not traced.")
        }
    }
}
