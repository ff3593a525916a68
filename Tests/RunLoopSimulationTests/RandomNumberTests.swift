@_spi(Ports) import RunLoopCore
import RunLoopKit
import RunLoopSimulation
import Testing

@Suite("Random numbers of a world")
struct RandomNumberTests {
    /// Returns the numbers that a simulation's loop and one of its threads draw.
    private func numbers(seed: UInt64) -> [Int] {
        withSimulation(seed: seed) { simulation in
            let found = Locked<[Int]>([])
            let choose: @Sendable (RunLoop) -> Void = { loop in
                found.withLock { $0.append(.random(in: 0..<1_000_000, using: &loop.randomNumbers)) }
            }
            for _ in 0..<10 { choose(simulation.loop) }
            LoopThread(name: "other", setUp: choose).join()
            choose(simulation.loop)
            #expect(simulation.seed == seed)
            return found.withLock(\.self)
        }
    }

    @Test("random numbers of a simulation follow from its seed")
    func seeds() {
        #expect(numbers(seed: 1) == numbers(seed: 1))
        #expect(Set(numbers(seed: 1)).count > 10)
        #expect(Set(numbers(seed: 1)).intersection(numbers(seed: 2)).count < 3)
    }

    @Test("without a seed a simulation is the same in every process")
    func withoutSeed() {
        let first = withSimulation { $0.loop.randomNumbers.next() }
        #expect(first == 0xe220_a839_7b1d_cdaf)
    }

    @Test("random numbers of the real world are the system's")
    func real() {
        let loop = RunLoop.current
        #expect(Set((0..<100).map { _ in loop.randomNumbers.next() }).count == 100)
    }
}
