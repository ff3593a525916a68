@_spi(Ports) import RunLoopCore
import RunLoopExploration
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

private struct Register: SequentialModel {
    enum Operation { case read, write(Int) }
    var value = 0

    mutating func perform(_ operation: Operation) -> Int {
        if case .write(let new) = operation { value = new }
        return value
    }
}

extension History {
    /// True if one order explains all operations so far; `false` also if the search for it was given up.
    fileprivate var isLinearizable: Bool { (try? check()) != nil }
}

/// A register that counts its operations.
private struct CountedRegister: SequentialModel {
    static let steps = Locked(0)
    var register = Register()

    mutating func perform(_ operation: Register.Operation) -> Int {
        Self.steps.withLock { $0 += 1 }
        return register.perform(operation)
    }
}

/// A set of numbers; adding one gives the sum.
private struct Tally: SequentialModel {
    var numbers: Set<Int> = []

    mutating func perform(_ number: Int) -> Int {
        numbers.insert(number)
        return numbers.reduce(0, +)
    }
}

private struct Store: SequentialModel {
    enum Operation {
        case get(String), put(String, Int)
    }
    var values: [String: Int] = [:]

    mutating func perform(_ operation: Operation) -> Int? {
        switch operation {
        case .get(let key): return values[key]
        case .put(let key, let value):
            values[key] = value
            return nil
        }
    }

    static func part(of operation: Operation) -> String? {
        switch operation {
        case .get(let key), .put(let key, _): key
        }
    }
}

/// A lock whose attempts may give up for no reason.
private struct Lock: SequentialModel {
    enum Operation { case attempt, release }
    var isHeld = false

    mutating func perform(_ operation: Operation) -> Bool {
        defer { isHeld = operation == .attempt }
        return !isHeld || operation == .release
    }

    mutating func accepts(_ outcome: Bool, of operation: Operation) -> Bool {
        operation == .attempt && !outcome ? true : perform(operation) == outcome
    }
}

@Suite("Histories of operations")
struct HistoryTests {
    /// Returns `true` if `body` makes a legal history of a register.
    private func isLegal(_ body: (Simulation, History<Register>) -> Void) -> Bool {
        withSimulation { simulation in
            let history = History(of: Register(), in: simulation)
            body(simulation, history)
            return history.isLinearizable
        }
    }

    @Test("operations that do not overlap keep their order")
    func sequential() {
        #expect(
            isLegal { _, history in
                history.end(history.begin(.write(1), by: "a"), with: 1)
                history.end(history.begin(.read, by: "b"), with: 1)
            })
        #expect(
            !isLegal { _, history in
                history.end(history.begin(.write(1), by: "a"), with: 1)
                history.end(history.begin(.read, by: "b"), with: 0)
            })
    }

    @Test("operations that overlap have any order, the same one for all readers")
    func overlapping() {
        for (first, second) in [(0, 0), (0, 1), (1, 1), (1, 0)] {
            let isLegal = isLegal { _, history in
                let write = history.begin(.write(1), by: "a")
                history.end(history.begin(.read, by: "b"), with: first)
                history.end(history.begin(.read, by: "c"), with: second)
                history.end(write, with: 1)
            }
            #expect(isLegal == (first <= second), "\(first), \(second)")
        }
    }

    @Test("an operation without an outcome may have happened at any time, or not", arguments: [0, 1, 2])
    func open(value: Int) {
        let isLegal = isLegal { _, history in
            _ = history.begin(.write(1), by: "a")
            history.end(history.begin(.read, by: "b"), with: 0)
            history.end(history.begin(.read, by: "b"), with: value)
        }
        #expect(isLegal == (value < 2))
    }

    @Test(
        "many writes that never end, with a read of the first value after each, are legal, and found so in few steps",
        arguments: [18, 100])
    func manyOpen(count: Int) {
        withSimulation { simulation in
            let history = History(of: CountedRegister(), in: simulation)
            for value in 1...count {
                _ = history.begin(.write(value), by: "writer \(value)")
                history.end(history.begin(.read, by: "reader"), with: 1)
            }
            CountedRegister.steps.withLock { $0 = 0 }
            #expect(history.isLinearizable)
            #expect(CountedRegister.steps.withLock(\.self) <= 10 * count)
            // Each write may have happened, but not before it began.
            for value in [1, count, 2] { history.end(history.begin(.read, by: "reader"), with: value) }
            #expect(history.isLinearizable)
            history.end(history.begin(.read, by: "reader"), with: count + 1)
            #expect(!history.isLinearizable)
            #expect(CountedRegister.steps.withLock(\.self) <= 100 * count * count)
        }
    }

    @Test("a search for an order that takes too long is given up and reported")
    func givenUp() {
        let illegal = #expect(throws: HistoryError.self) {
            try withSimulation { simulation in
                let history = History(of: Tally(), in: simulation)
                for number in 0..<25 { _ = history.begin(number, by: "a") }
                history.end(history.begin(0, by: "b"), with: -1)
                try history.check()
            }
        }
        #expect(illegal?.isUndecided == true)
        #expect(illegal?.description.contains("was given up, and there may be one") == true)
    }

    @Test("a refused operation has not happened")
    func refused() {
        #expect(
            !isLegal { _, history in
                history.refuse(history.begin(.write(1), by: "a"))
                history.end(history.begin(.read, by: "b"), with: 1)
            })
    }

    @Test("tasks record operations; one that throws may have happened, unless its error says that it has not")
    func tasks() {
        struct Refused: Error {}
        struct Broken: Error {}
        withSimulation { simulation in
            let history = History(of: Register(), in: simulation)
            var value = 0
            simulation.loop.task {
                await history.record(.write(1), by: "a") {
                    value = 1
                    return value
                }
                _ = try? await history.record(.write(2), by: "a") {
                    value = 2
                    throw Broken()
                }
                _ = try? await history.record(.write(3), by: "a", refusedIf: { $0 is Refused }) { throw Refused() }
                await history.record(.read, by: "a") { value }
            }
            simulation.runUntilIdle()
            #expect(history.count == 4 && history.isLinearizable)
            history.end(history.begin(.read, by: "b"), with: 3)
            #expect(!history.isLinearizable)
        }
    }

    @Test("a model may accept several outcomes")
    func severalOutcomes() {
        withSimulation { simulation in
            let history = History(of: Lock(), in: simulation)
            history.end(history.begin(.attempt, by: "a"), with: false)
            history.end(history.begin(.attempt, by: "a"), with: true)
            history.end(history.begin(.attempt, by: "b"), with: false)
            #expect(history.isLinearizable)
            history.end(history.begin(.attempt, by: "b"), with: true)
            #expect(!history.isLinearizable)
        }
    }

    @Test("the report has the part, the order, and the operations that cannot be placed, as bars")
    func report() throws {
        let illegal = #expect(throws: HistoryError.self) {
            try withSimulation { simulation in
                let history = History(of: Store(), in: simulation)
                history.end(history.begin(.put("x", 1), by: "a"), with: nil)
                history.end(history.begin(.put("y", 2), by: "a"), with: nil)
                simulation.advance(by: .seconds(1))
                let put = history.begin(.put("x", 2), by: "a")
                _ = history.begin(.put("x", 3), by: "c")
                _ = history.begin(.put("x", 4), by: "d")
                simulation.advance(by: .seconds(1))
                history.end(history.begin(.get("x"), by: "b"), with: 3)
                simulation.advance(by: .seconds(1))
                history.end(put, with: nil)
                history.end(history.begin(.get("x"), by: "b"), with: 1)
                try history.check()
            }
        }
        #expect(illegal?.part == "x")
        #expect(
            illegal?.description == """
                no order of the operations on "x" explains their outcomes: after 4, none of those marked ✕ can come next
                1  a: put("x", 1) → nil        ├────┤                                            0.000000000 to 0.000000000
                2  a: put("x", 2) → nil                   ├──────────────────────┤               1.000000000 to 3.000000000
                3  c: put("x", 3), no outcome                   ├──────────────────────────────  1.000000000
                4  b: get("x") → 3                                    ├────┤                     2.000000000 to 2.000000000
                ✕  b: get("x") → 1                                                     ├─────┤   3.000000000 to 3.000000000
                """)
    }

    // MARK: At random

    /// Returns `true` if the history is legal, by trying all orders.
    private func isLegal(_ entries: [(operation: Register.Operation, begin: Int, end: Int?, outcome: Int)]) -> Bool {
        func search(_ left: [Int], _ state: Register) -> Bool {
            if left.allSatisfy({ entries[$0].end == nil }) { return true }
            let firstEnd = left.compactMap { entries[$0].end }.min()!
            return left.contains { index in
                guard entries[index].begin < firstEnd else { return false }
                var next = state
                let outcome = next.perform(entries[index].operation)
                return (entries[index].end == nil || outcome == entries[index].outcome)
                    && search(left.filter { $0 != index }, next)
            }
        }
        return search(Array(entries.indices), Register())
    }

    @Test("random histories are legal if one of all orders is")
    func random() {
        let first = UInt64.random(in: 0...UInt64(UInt32.max)) << 16
        var legal = 0
        let rounds = amount(of: "HISTORIES", usually: 3_000)
        for round in 0..<rounds {
            let seed = first | UInt64(round)
            var random = SeededGenerator(seed: seed)
            withSimulation { simulation in
                let history = History(of: Register(), in: simulation)
                var entries: [(operation: Register.Operation, begin: Int, end: Int?, outcome: Int)] = []
                var open: [(index: Int, record: History<Register>.Record)] = []
                var value = 0
                for moment in 0..<14 {
                    if open.count < 4, entries.count < 7, open.isEmpty || Bool.random(using: &random) {
                        let isRead = Bool.random(using: &random)
                        let operation: Register.Operation =
                            isRead ? .read : .write(Int.random(in: 1...3, using: &random))
                        open.append((entries.count, history.begin(operation, by: "\(open.count)")))
                        entries.append((operation, moment, nil, 0))
                    } else if let place = open.indices.randomElement(using: &random) {
                        let (index, record) = open.remove(at: place)
                        if case .write(let new) = entries[index].operation { value = new }
                        // Mostly the value of a register, so that legal and illegal histories are about equally many.
                        let outcome =
                            Int.random(in: 0..<12, using: &random) == 0 ? Int.random(in: 0...3, using: &random) : value
                        history.end(record, with: outcome)
                        (entries[index].end, entries[index].outcome) = (moment, outcome)
                    }
                }
                let expected = isLegal(entries)
                legal += expected ? 1 : 0
                #expect(history.isLinearizable == expected, "seed \(seed): \(entries)")
            }
        }
        #expect(legal > rounds / 5 && legal < rounds * 4 / 5)
    }

    @Test("a hundred thousand operations on a thousand keys")
    func many() {
        withSimulation { simulation in
            let history = History(of: Store(), in: simulation)
            var random = SeededGenerator(seed: 7)
            var values: [String: Int] = [:]
            var open: [() -> Void] = []
            for number in 0..<amount(of: "OPERATIONS", usually: 10_000) {
                let key = "key \(Int.random(in: 0..<1_000, using: &random))"
                if Bool.random(using: &random) {
                    let record = history.begin(.put(key, number), by: "\(number % 10)")
                    values[key] = number
                    open.append { history.end(record, with: nil) }
                } else {
                    let record = history.begin(.get(key), by: "\(number % 10)")
                    let value = values[key]
                    open.append { history.end(record, with: value) }
                }
                if open.count == 10 { open.remove(at: Int.random(in: 0..<10, using: &random))() }
            }
            #expect(history.isLinearizable)
        }
    }

    // MARK: Explored

    /// A cache that answers from its own copy while a write is on its way.
    private func staleReads(_ simulation: Simulation) throws {
        let loop = simulation.loop
        let history = History(of: Register(), in: simulation)
        var (stored, cached) = (0, 0)
        loop.task(name: "writer") {
            await history.record(.write(1), by: "writer") {
                stored = 1
                await Task.yield()
                return 1
            }
            await Task.yield()
            cached = stored
        }
        loop.task(name: "reader") {
            for _ in 0..<2 { await Task.yield() }
            await history.record(.read, by: "reader") { cached }
        }
        simulation.runUntilIdle()
        try history.check()
    }

    @Test("an exploration finds the schedule that leads to an illegal history")
    func explored() {
        guard case .failed(let finding) = Exploration().run(staleReads) else {
            Issue.record("nothing was found")
            return
        }
        #expect(finding.fault.kind == .expectation)
        #expect(finding.fault.description.contains("reader: read → 0"))
        #expect(finding.isReproducible)
    }
}
