import BellSource
import RunLoopKit
import RunLoopSimulation
import Testing

@Suite("A source from outside", .timeLimit(.minutes(5)))
struct BellTests {
    @Test("a bell that another thread rings is heard in the modes of its source")
    func rings() throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            var rings: [Int] = []
            let source = try BellSource { rings.append($0) }
            try loop.add(source, forMode: .default)
            let bell = source.bell
            LoopThread(name: "ringer") { _ in for _ in 0..<3 { bell.ring() } }.join()
            loop.run(in: .tracking, until: loop.now + .seconds(1))
            #expect(rings == [])
            simulation.advance(by: .seconds(1))
            #expect(rings == [3])
            source.invalidate()
            bell.ring()
            simulation.advance(by: .seconds(1))
            #expect(rings == [3] && !source.isValid)
        }
    }

    @Test("a source is in its loop's report, and the end of the loop invalidates it")
    func end() throws {
        let source = try BellSource { _ in }
        try withSimulation { simulation in
            try simulation.loop.add(source, forMode: .default)
            #expect("\(simulation.loop.dump())".contains("bell"))
        }
        #expect(!source.isValid)
    }
}
