import TestSupport
import Testing

@testable import RunLoopCore

@Suite("Cycles of waiting")
struct WaitGraphTests {
    private func cycles(_ waits: [(Int, Int)]) -> [[Int]] {
        var graph = WaitGraph()
        for (task, other) in waits { graph.add(task, awaits: other) }
        return graph.cycles
    }

    @Test("a chain, a fan and a diamond have no cycle")
    func none() {
        #expect(cycles([]) == [])
        #expect(cycles((0..<10_000).map { ($0, $0 + 1) }) == [])
        #expect(cycles((1..<10_000).map { (0, $0) } + (1..<10_000).map { ($0, 10_000) }) == [])
    }

    @Test("each cycle is found once and begins with its smallest number, whatever leads to it")
    func some() {
        #expect(cycles([(7, 7)]) == [[7]])
        #expect(cycles([(2, 9), (9, 2), (1, 2), (9, 4)]) == [[2, 9]])
        #expect(cycles([(5, 3), (3, 4), (4, 5), (10, 11), (11, 10), (0, 5), (0, 10)]) == [[3, 4, 5], [10, 11]])
        #expect(cycles([(1, 2), (2, 3), (3, 1), (2, 1)]) == [[1, 2]])
    }

    @Test("a cycle is found exactly where a search from every task finds one", arguments: 0..<20)
    func model(seed: Int) {
        var random = SeededGenerator(seed: UInt64(seed))
        for _ in 0..<50 {
            let waits = (0..<Int.random(in: 0..<14, using: &random)).map { _ in
                (Int.random(in: 0..<8, using: &random), Int.random(in: 0..<8, using: &random))
            }
            func reaches(_ from: Int, _ to: Int) -> Bool {
                var (seen, open) = (Set<Int>(), [from])
                while let task = open.popLast() {
                    for (one, other) in waits where one == task {
                        if other == to { return true }
                        if seen.insert(other).inserted { open.append(other) }
                    }
                }
                return false
            }
            let found = cycles(waits)
            #expect(found.isEmpty == !(0..<8).contains { reaches($0, $0) }, "\(waits)")
            for cycle in found {
                for (task, next) in zip(cycle, cycle.dropFirst() + cycle.prefix(1)) {
                    #expect(waits.contains { $0 == (task, next) }, "\(waits)")
                }
            }
        }
    }
}
