import RunLoopKit
import RunLoopSimulation
import Testing

@Suite("Sets of modes")
struct ModesTests {
    @Test("literals and variables name the same modes")
    func spellings() {
        let panel: RunLoop.Mode = "panel"
        withSimulation { simulation in
            let loop = simulation.loop
            let timer = Timer(timeInterval: .seconds(1), repeats: true) { _ in }
            loop.add(timer, forMode: .common)
            #expect(loop.contains(timer, inMode: .common))
            #expect(loop.contains(timer, inMode: .default))
            loop.remove(timer, fromMode: "common")
            loop.add(timer, forMode: "panel")
            #expect(loop.contains(timer, inMode: RunLoop.Modes(panel)))
            loop.add(timer, forMode: [.default, "sheet"])
            #expect(loop.contains(timer, inMode: ["panel", "sheet", .default]))
            loop.remove(timer, fromMode: RunLoop.Modes([panel, .default]))
            #expect(!loop.contains(timer, inMode: "panel"))
            #expect(loop.contains(timer, inMode: "sheet"))
            loop.add(timer, forMode: .every)
            #expect(loop.contains(timer, inMode: .every))
        }
    }
}
