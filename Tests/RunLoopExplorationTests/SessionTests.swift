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

    static func isRead(_ operation: Operation) -> Bool {
        if case .read = operation { true } else { false }
    }
}

@Suite("Guarantees for the sessions of clients")
struct SessionTests {
    private static let each: [SessionGuarantees] = [
        .readYourWrites, .monotonicReads, .monotonicWrites, .writesFollowReads,
    ]

    /// Operations of clients, one after the other.
    private typealias Operations = [(client: String, operation: Register.Operation, outcome: Int)]

    private func isLegal(_ operations: Operations, with guarantees: SessionGuarantees) -> Bool {
        withSimulation { simulation in
            let history = History(of: Register(), in: simulation)
            for (client, operation, outcome) in operations {
                history.end(history.begin(operation, by: client), with: outcome)
            }
            do { try history.check(guarantees, reads: Register.isRead) } catch { return false }
            return true
        }
    }

    @Test("each guarantee forbids its own anomaly, and the other three together allow it", arguments: 0..<4)
    func anomalies(number: Int) {
        let operations: Operations =
            switch number {
            // A client does not find its own write.
            case 0: [("a", .write(1), 1), ("a", .read, 0)]
            // A client finds a value, and then an older one.
            case 1: [("a", .write(1), 1), ("b", .read, 1), ("b", .read, 0)]
            // Two writes of a client are found in the wrong order.
            case 2: [("a", .write(1), 1), ("a", .write(2), 2), ("b", .read, 2), ("b", .read, 1)]
            // A client answers a question, and others find the answer first.
            default:
                [("a", .write(1), 1), ("b", .read, 1), ("b", .write(2), 2), ("c", .read, 2), ("c", .read, 1)]
            }
        // A client whose own reads are monotonic sees the last two.
        let others = number < 2 ? SessionGuarantees.all.subtracting(Self.each[number]) : .monotonicReads
        #expect(!isLegal(operations, with: others.union(Self.each[number])))
        #expect(isLegal(operations, with: others))
    }

    @Test("sessions allow another client to read an old value, which is not linearizable")
    func stale() {
        let operations: Operations = [("a", .write(1), 1), ("b", .read, 0), ("a", .read, 1), ("b", .read, 1)]
        #expect(isLegal(operations, with: .all))
    }

    @Test("operations of a client that overlap have no order, and nothing has to come after one without an outcome")
    func open() throws {
        try withSimulation { simulation in
            let history = History(of: Register(), in: simulation)
            let write = history.begin(.write(1), by: "a")
            history.end(history.begin(.read, by: "a"), with: 0)
            try history.check(.all, reads: Register.isRead)
            history.end(write, with: 1)
            _ = history.begin(.write(2), by: "a")
            history.end(history.begin(.read, by: "a"), with: 1)
            history.end(history.begin(.read, by: "a"), with: 2)
            history.refuse(history.begin(.write(3), by: "a"))
            try history.check(.all, reads: Register.isRead)
            history.end(history.begin(.read, by: "b"), with: 3)
            #expect(throws: HistoryError.self) { try history.check(.all, reads: Register.isRead) }
        }
    }

    @Test("the report names the guarantees, the order, and the operations that cannot be placed, as bars")
    func report() {
        let illegal = #expect(throws: HistoryError.self) {
            try withSimulation { simulation in
                let history = History(of: Register(), in: simulation)
                history.end(history.begin(.write(1), by: "a"), with: 1)
                simulation.advance(by: .seconds(1))
                history.end(history.begin(.read, by: "b"), with: 1)
                simulation.advance(by: .seconds(1))
                history.end(history.begin(.read, by: "b"), with: 0)
                try history.check([.readYourWrites, .monotonicReads], reads: Register.isRead)
            }
        }
        #expect(
            illegal?.description == """
                no order of the operations explains their outcomes (read your writes, monotonic reads): after 2, none of those marked ✕ can come next
                1  a: write(1) → 1  ├────────┤                                        0.000000000 to 0.000000000
                2  b: read → 1                        ├────────┤                      1.000000000 to 1.000000000
                ✕  b: read → 0                                          ├─────────┤   2.000000000 to 2.000000000
                """)
    }

    @Test("thousands of operations are checked where the changes are found in their order")
    func many() throws {
        try withSimulation { simulation in
            let history = History(of: Register(), in: simulation)
            var random = SeededGenerator(seed: 3)
            var values = [0]
            var seen = [0, 0, 0, 0]
            for _ in 0..<amount(of: "OPERATIONS", usually: 1_000) {
                let client = Int.random(in: 0..<4, using: &random)
                if Int.random(in: 0..<4, using: &random) == 0 {
                    values.append(values.count)
                    seen[client] = values.count - 1
                    history.end(history.begin(.write(seen[client]), by: "\(client)"), with: seen[client])
                } else {
                    seen[client] = Int.random(in: max(seen[client], values.count - 4)..<values.count, using: &random)
                    history.end(history.begin(.read, by: "\(client)"), with: seen[client])
                }
            }
            try history.check(.all, reads: Register.isRead)
        }
    }

    // MARK: At random

    private struct Entry {
        let client: Int
        let operation: Register.Operation
        let begin: Int
        var end: Int?
        var outcome = 0
    }

    /// Returns `true` if the operations are legal, by trying all orders.
    private func isLegal(_ entries: [Entry], _ guarantees: SessionGuarantees) -> Bool {
        /// Returns `true` if a guarantee orders an operation before another one.
        func comes(_ first: Entry, before second: Entry) -> Bool {
            guard first.client == second.client, let end = first.end, end < second.begin else { return false }
            return switch (Register.isRead(first.operation), Register.isRead(second.operation)) {
            case (false, true): guarantees.contains(.readYourWrites)
            case (true, true): guarantees.contains(.monotonicReads)
            case (false, false): guarantees.contains(.monotonicWrites)
            case (true, false): guarantees.contains(.writesFollowReads)
            }
        }
        func search(_ order: [Int], _ left: [Int], _ state: Register) -> Bool {
            if left.allSatisfy({ entries[$0].end == nil }) { return true }
            return left.contains { index in
                guard !order.contains(where: { comes(entries[index], before: entries[$0]) }) else { return false }
                var next = state
                let outcome = next.perform(entries[index].operation)
                return (entries[index].end == nil || outcome == entries[index].outcome)
                    && search(order + [index], left.filter { $0 != index }, next)
            }
        }
        return search([], Array(entries.indices), Register())
    }

    @Test("random histories are legal if one of all orders is, with any guarantees")
    func random() {
        let first = UInt64.random(in: 0...UInt64(UInt32.max)) << 16
        var legal = 0
        let rounds = amount(of: "HISTORIES", usually: 2_000)
        for round in 0..<rounds {
            let seed = first | UInt64(round)
            var random = SeededGenerator(seed: seed)
            let guarantees = SessionGuarantees(rawValue: Int.random(in: 1..<16, using: &random))
            withSimulation { simulation in
                let history = History(of: Register(), in: simulation)
                var entries: [Entry] = []
                var open: [(index: Int, record: History<Register>.Record)] = []
                for moment in 0..<14 {
                    if open.count < 3, entries.count < 7, open.isEmpty || Bool.random(using: &random) {
                        let client = Int.random(in: 0..<2, using: &random)
                        let operation: Register.Operation =
                            Bool.random(using: &random) ? .read : .write(Int.random(in: 1...2, using: &random))
                        open.append((entries.count, history.begin(operation, by: "\(client)")))
                        entries.append(Entry(client: client, operation: operation, begin: moment))
                    } else if let place = open.indices.randomElement(using: &random) {
                        let (index, record) = open.remove(at: place)
                        var outcome = Int.random(in: 0...2, using: &random)
                        if case .write(let value) = entries[index].operation { outcome = value }
                        history.end(record, with: outcome)
                        (entries[index].end, entries[index].outcome) = (moment, outcome)
                    }
                }
                let expected = isLegal(entries, guarantees)
                legal += expected ? 1 : 0
                let isFound: Bool
                do {
                    try history.check(guarantees, reads: Register.isRead)
                    isFound = true
                } catch {
                    isFound = false
                }
                #expect(isFound == expected, "seed \(seed), \(guarantees): \(entries)")
            }
        }
        #expect(legal > rounds / 5 && legal < rounds * 4 / 5, "\(legal) of \(rounds) are legal")
    }
}
