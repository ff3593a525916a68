@_spi(Ports) internal import RunLoopSimulation

/// The columns of a drawing: one for each machine, or thread of the test, and one for each of the machine's other
/// threads and tasks.
struct Columns {
    struct Column: Hashable {
        /// The lane of the machine, or of a thread of the test.
        let machine: String
        /// The thread or task; empty for the machine itself.
        let part: String

        var name: String { part.isEmpty ? machine : part }

        init(_ machine: String, _ part: String = "") {
            (self.machine, self.part) = (machine, part)
        }

        init(of event: TracedEvent) {
            if let owner = event.owner {
                self.init(owner, event.lane)
            } else {
                self.init(event.lane, event.thread ?? "")
            }
        }
    }

    /// The columns, grouped by machine, in the order of their appearance.
    let all: [Column]
    private let places: [Column: Int]

    init(of runs: [Rows]) {
        var known: Set<Column> = []
        var (machines, parts) = ([String](), [String: [Column]]())
        for event in runs.flatMap(\.rows).map(\.event) {
            let sender = event.sender.map { [Column($0)] } ?? []
            for column in sender + [Column(of: event)] where known.insert(column).inserted {
                if parts[column.machine] == nil { machines.append(column.machine) }
                parts[column.machine, default: []].append(column)
            }
        }
        let order = runs.flatMap(\.lanes)
        machines.sort { (order.firstIndex(of: $0) ?? .max) < (order.firstIndex(of: $1) ?? .max) }
        all = machines.flatMap { parts[$0]! }
        places = Dictionary(uniqueKeysWithValues: all.enumerated().map { ($1, $0) })
    }

    subscript(column: Column) -> Int { places[column]! }

    /// The ranges of columns that belong to one machine.
    var machines: [ClosedRange<Int>] {
        var ranges: [ClosedRange<Int>] = []
        for (index, column) in all.enumerated() {
            if let last = ranges.last, all[last.lowerBound].machine == column.machine {
                ranges[ranges.count - 1] = last.lowerBound...index
            } else {
                ranges.append(index...index)
            }
        }
        return ranges
    }
}
