import RunLoopKit
import TestSupport
import Testing

@testable import RunLoopConsole

@Suite("Lines whose items grow")
struct GrowthTests {
    /// Returns the growth of one line after each look, a second apart.
    private func growth(_ counts: [Int?]) -> [Int?] {
        var watch = GrowthWatch()
        let line = GrowthWatch.Line(kind: .timer, origin: RunLoop.Origin(file: "App/main.swift", line: 1))
        return counts.enumerated().map { second, count in
            watch.look(count.map { [line: $0] } ?? [:], at: seconds(Double(second)))[line]?.items
        }
    }

    @Test("a line grows when its number has risen three times and never fallen")
    func rises() {
        #expect(growth([5, 6, 7, 8, 9]) == [nil, nil, nil, 3, 4])
        #expect(growth([5, 6, 6, 6, 7, 7, 9]) == [nil, nil, nil, nil, nil, nil, 4])
        #expect(growth([5, 5, 5, 5, 5]) == [nil, nil, nil, nil, nil])
    }

    @Test("a line that is new in a later snapshot had no items before")
    func new() {
        #expect(growth([nil, 1, 2, 3]) == [nil, nil, nil, 3])
        #expect(growth([nil, 100, 100, 100, 100]) == [nil, nil, nil, nil, nil])
    }

    @Test("a line that falls begins again, however much it rose")
    func falls() {
        #expect(growth([5, 6, 7, 6, 7, 8, 9]) == [nil, nil, nil, nil, nil, nil, 3])
        #expect(growth([5, 60, 5, 60, 5, 60, 5]) == [nil, nil, nil, nil, nil, nil, nil])
        #expect(growth([5, 6, 7, 8, 0, 1, 2]) == [nil, nil, nil, 3, nil, nil, nil])
        #expect(growth([5, 6, 7, 8, nil, 3, 4, 5]) == [nil, nil, nil, 3, nil, nil, nil, 5])
    }

    @Test("the time of a growth is counted from the last snapshot without it")
    func time() {
        var watch = GrowthWatch()
        let line = GrowthWatch.Line(kind: .timer, origin: RunLoop.Origin(file: "App/main.swift", line: 1))
        var times: [Duration?] = []
        for (second, count) in [5, 5, 5, 6, 7, 8, 9].enumerated() {
            times.append(watch.look([line: count], at: seconds(Double(second)))[line]?.time)
        }
        #expect(times == [nil, nil, nil, nil, nil, .seconds(3), .seconds(4)])
    }
}
