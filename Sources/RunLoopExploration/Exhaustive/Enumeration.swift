internal import RunLoopSimulation

/// All schedules with a limited number of departures, one after the other: first the schedules with none, then with
/// one, and so on.
///
/// Schedules with the same number of departures are the leaves of a tree, whose inner nodes have fewer. A node's
/// children are known after its run: each departs once more, at a later place.
struct Enumeration {
    private let mostDepartures: Int
    /// The path with no departures.
    private let root: Path
    /// The number of departures of the present schedules.
    private(set) var departures = 0
    /// The number of schedules that have been run, by their departures.
    private(set) var counts = [0]
    private(set) var isComplete = false
    /// The nodes on the way to the next leaf.
    private var nodes: [Node] = []
    /// `true` once the tree of the present schedules was begun.
    private var isBegun = false
    private var next: Path?
    /// The digests of the runs with the present number of departures, and of the remaining runs with one fewer: a
    /// program that behaves differently when repeated has not been tried in all its ways.
    private var (digests, former): ([UInt64], ArraySlice<UInt64>) = ([], [])
    private var difference: Run?
    /// The number of runs that have met each mark.
    private(set) var marks = Simulation.Marks()

    private struct Node {
        let path: Path
        let branches: [Path.Branch]
        var next = (branch: 0, choice: 0)

        mutating func takeNext() -> Path? {
            while next.branch < branches.count {
                let branch = branches[next.branch]
                if next.choice < branch.choices.count {
                    defer { next.choice += 1 }
                    return path.departing(at: branch.point, branch.choices[next.choice])
                }
                next = (next.branch + 1, 0)
            }
            return nil
        }
    }

    init(departures: Int, hostsShareNothing: Bool) {
        mostDepartures = departures
        root = Path(hostsShareNothing: hostsShareNothing)
    }

    /// Returns `true` if a schedule is left. May run others to find out.
    mutating func hasNext(_ runner: inout some Runner & ~Copyable) -> Bool {
        while next == nil && !isComplete {
            next = nextPath(&runner)
            guard next == nil, difference == nil else { break }
            if departures == mostDepartures { isComplete = true } else { begin(departures + 1) }
        }
        return !isComplete
    }

    /// Runs the next schedule, of which there must be one.
    mutating func runNext(_ runner: inout some Runner & ~Copyable) -> Run {
        if let difference { return difference }
        counts[departures] += 1
        let (result, _) = runner.follow(next.take()!, marks: &marks)
        digests.append(result.digest)
        return result
    }

    private mutating func begin(_ departures: Int) {
        self.departures = departures
        counts.append(0)
        isBegun = false
        (nodes, former, digests) = ([], digests[...], [])
    }

    private mutating func nextPath(_ runner: inout some Runner & ~Copyable) -> Path? {
        if departures == 0 { return counts[0] == 0 ? root : nil }
        if nodes.isEmpty, !isBegun { add(root, &runner) }
        while difference == nil, let last = nodes.indices.last {
            guard let path = nodes[last].takeNext() else {
                nodes.removeLast()
                continue
            }
            if path.departures.count == departures { return path }
            add(path, &runner)
        }
        return nil
    }

    /// Runs an inner node, which was a leaf before, to find its children.
    private mutating func add(_ path: Path, _ runner: inout some Runner & ~Copyable) {
        isBegun = true
        var repeated = Simulation.Marks()
        var (result, branches) = runner.follow(path, marks: &repeated)
        if path.departures.count == departures - 1, former.popFirst() != result.digest || result.fault != nil {
            result.fault = Fault.difference
            difference = result
        }
        nodes.append(Node(path: path, branches: branches))
    }
}
