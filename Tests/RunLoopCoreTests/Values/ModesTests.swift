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
            #expect(loop.contains(timer, forMode: .common))
            #expect(loop.contains(timer, forMode: .default))
            loop.remove(timer, forMode: "common")
            loop.add(timer, forMode: "panel")
            #expect(loop.contains(timer, forMode: RunLoop.Modes(panel)))
            loop.add(timer, forMode: [.default, "sheet"])
            #expect(loop.contains(timer, forMode: ["panel", "sheet", .default]))
            loop.remove(timer, forMode: RunLoop.Modes([panel, .default]))
            #expect(!loop.contains(timer, forMode: "panel"))
            #expect(loop.contains(timer, forMode: "sheet"))
            loop.add(timer, forMode: .every)
            #expect(loop.contains(timer, forMode: .every))
        }
    }

    @Test("removing an item of every mode from the default or the common modes does nothing and is reported")
    func everyModeStays() {
        withSimulation { simulation in
            let loop = simulation.loop
            var ignored: [String] = []
            loop.trace = { if case .ignored(let what) = $0 { ignored.append(what) } }
            var fires = 0
            let timer = Timer(timeInterval: .seconds(1), repeats: true) { _ in fires += 1 }
            loop.add(timer, forMode: .every)
            loop.remove(timer, forMode: .default)
            loop.remove(timer, forMode: .common)
            #expect(
                ignored
                    == ["default", "common"].map {
                        "\(timer) is in every mode, and stays in \($0); remove it from .every"
                    })
            simulation.advance(by: .seconds(1))
            #expect(fires == 1)
            loop.add(timer, forMode: .default)
            loop.remove(timer, forMode: [.default, .every])
            #expect(ignored.count == 2 && !loop.contains(timer, forMode: .default))
            simulation.advance(by: .seconds(1))
            #expect(fires == 1)
        }
    }
}
