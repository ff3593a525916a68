import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@Suite("A timer fires while one of its modes runs")
struct TimerModeTests {
    @Test(
        "a timer fires while one of its modes runs; a late one fires when the mode runs again",
        arguments: [
            (.default, [1, 2, 5.5, 6, 7, 8]),
            (.tracking, [2.5, 3, 4, 5]),
            (.common, [1, 2, 3, 4, 5, 6, 7, 8]),
            ("panel", []),
            (["panel", .default], [1, 2, 5.5, 6, 7, 8]),
        ] as [(RunLoop.Modes, [Double])])
    func drag(modes: RunLoop.Modes, fires: [Double]) {
        withStory { simulation, story in
            let loop = simulation.loop
            loop.addCommonMode(.tracking)
            loop.add(Timer(timeInterval: .seconds(1), repeats: true) { _ in story.tell("fire") }, forMode: modes)
            simulation.drag(from: seconds(2.5), until: seconds(5.5))
            simulation.advance(to: seconds(8))
            #expect(story.lines == fires.map { "\($0) fire" })
        }
    }

    @Test("a mode of one's own is a name, and runs like any other")
    func ownMode() {
        withStory { simulation, story in
            let loop = simulation.loop
            loop.add(Timer(timeInterval: .seconds(1), repeats: true) { _ in story.tell("panel") }, forMode: "panel")
            loop.add(Timer(timeInterval: .seconds(1), repeats: true) { _ in story.tell("default") }, forMode: .default)
            loop.run(in: "panel", until: seconds(2.5))
            loop.run(in: .default, until: seconds(4.5))
            #expect(
                story.lines == ["1.0 panel", "2.0 panel", "2.5 default", "3.0 default", "4.0 default"])
        }
    }

    @Test("a mode that becomes common takes the common timers in")
    func becomesCommon() {
        withStory { simulation, story in
            let loop = simulation.loop
            let timer = Timer(timeInterval: .seconds(1), repeats: true) { _ in story.tell("fire") }
            loop.add(timer, forMode: .common)
            #expect(loop.contains(timer, forMode: .default))
            #expect(!loop.contains(timer, forMode: "panel"))
            loop.addCommonMode("panel")
            #expect(loop.contains(timer, forMode: "panel"))
            loop.run(in: "panel", until: seconds(2))
            #expect(story.lines == ["1.0 fire", "2.0 fire"])
        }
    }
}
