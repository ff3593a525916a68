import RunLoopExploration
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

private actor Room {
    private let home: RunLoop.Executor
    nonisolated var unownedExecutor: UnownedSerialExecutor { home.serial.asUnownedSerialExecutor() }

    init(on home: RunLoop.Executor) {
        self.home = home
    }

    func visit() {}
}

/// Tasks on three loops that yield, sleep, start others, and go to one another's threads, determined by the seed.
private struct Program {
    let seed: UInt64
    let log = Log<String>()

    func run(_ simulation: Simulation) {
        let loop = simulation.loop
        let threads = ["a", "b"].map { name in LoopThread(name: name) { $0.add(CustomSource(), forMode: .default) } }
        let rooms = ([loop.remote] + threads.map(\.remote)).map { Room(on: $0.executor()) }
        for number in 0..<4 { start("\(number)", depth: 0, on: loop, rooms) }
        for (index, thread) in threads.enumerated() {
            thread.remote.perform { start("\(["a", "b"][index])", depth: 0, on: $0, rooms) }
        }
        simulation.advance(by: .seconds(10))
        for thread in threads { thread.stop() }
        for thread in threads { thread.join() }
    }

    private func start(_ name: String, depth: Int, on loop: RunLoop, _ rooms: [Room]) {
        loop.task {
            var numbers = SeededGenerator(seed: seed &+ UInt64(name.utf8.reduce(0) { $0 * 31 + Int($1) }))
            for step in 0..<6 {
                switch Int.random(in: 0..<5, using: &numbers) {
                case 0: await Task.yield()
                case 1: try await loop.clock.sleep(for: .milliseconds(Int.random(in: 0...3, using: &numbers)))
                case 2: await rooms.randomElement(using: &numbers)!.visit()
                case 3 where depth < 2: start("\(name).\(step)", depth: depth + 1, on: loop, rooms)
                default: loop.perform { log("\(name) \(step) posted") }
                }
                log("\(name) \(step) \(loop.now)")
            }
        }
    }
}

@Suite("What usually happens")
struct UsualOrderTests {
    @Test("the first schedule of an exploration has the order of a simulation that is not explored", arguments: 0..<50)
    func first(seed: UInt64) {
        let program = Program(seed: seed)
        withSimulation { program.run($0) }
        let plain = program.log.entries
        let explored = Program(seed: seed)
        guard case .passed = Exploration(schedules: 1).run({ explored.run($0) }) else {
            Issue.record("seed \(seed) failed")
            return
        }
        // The first schedule is run twice.
        #expect(Array(explored.log.entries.prefix(plain.count)) == plain && plain.count > 20, "seed \(seed)")
    }
}
