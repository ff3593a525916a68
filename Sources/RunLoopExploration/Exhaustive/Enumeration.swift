internal import RunLoopSimulation

/// All schedules with at most so many departures, one after the other: first those with none, then those with one, and so
/// on.
///
/// Schedules with a number of departures are the leaves of a tree, whose inner nodes have fewer. A node's children are known
/// after its run: each depart once more, at a later place.
struct Enumeration {
    private let mostDepartures: Int
    private let hostsShareNothing: Bool
    /// The number of departures of the present schedules.
    private(set) var departures = 0
    /// The number of schedules that have been run, by their departures.
    private(set) var counts = [0]
    private(set) var isComplete = false
    /// The nodes on the way to the next leaf.
    private var nodes: [Node] = []
    /// Whether the tree of the present schedules was begun.
    private var isBegun = false
    private var next: [Departure]?
    /// The digests of the runs with as many departures as now, and of the remaining ones with one less: a program that
    /// does not do the same again has not been tried in all its ways.
    private var (digests, former): ([UInt64], ArraySlice<UInt64>) = ([], [])
    private var difference: Run?

    /// A choice other than the usual one, at a place of the run.
    struct Departure: Hashable {
        let point: Int
        let choice: Int
    }

    /// A place where a schedule may depart from the usual choice.
    struct Branch {
        let point: Int
        /// The choices other than the usual one.
        let choices: [Int]
    }

    private struct Node {
        let path: [Departure]
        let branches: [Branch]
        var next = (branch: 0, choice: 0)

        mutating func takeNext() -> [Departure]? {
            while next.branch < branches.count {
                let branch = branches[next.branch]
                if next.choice < branch.choices.count {
                    defer { next.choice += 1 }
                    return path + [Departure(point: branch.point, choice: branch.choices[next.choice])]
                }
                next = (next.branch + 1, 0)
            }
            return nil
        }
    }

    init(departures: Int, hostsShareNothing: Bool) {
        (mostDepartures, self.hostsShareNothing) = (departures, hostsShareNothing)
    }

    /// Whether a schedule is left. It may run others to find out.
    ///
    /// - Parameter run: runs a schedule.
    mutating func hasNext(_ run: (any Chooser) -> Run) -> Bool {
        while next == nil && !isComplete {
            next = nextPath(run)
            guard next == nil, difference == nil else { break }
            if departures == mostDepartures { isComplete = true } else { begin(departures + 1) }
        }
        return !isComplete
    }

    /// Runs the next schedule; there must be one.
    ///
    /// - Parameter run: runs a schedule.
    mutating func runNext(_ run: (any Chooser) -> Run) -> Run {
        if let difference { return difference }
        counts[departures] += 1
        let (result, _) = self.run(next.take()!, run)
        digests.append(result.digest)
        return result
    }

    private mutating func begin(_ departures: Int) {
        self.departures = departures
        counts.append(0)
        isBegun = false
        (nodes, former, digests) = ([], digests[...], [])
    }

    private mutating func nextPath(_ run: (any Chooser) -> Run) -> [Departure]? {
        if departures == 0 { return counts[0] == 0 ? [] : nil }
        if nodes.isEmpty, !isBegun { add([], run) }
        while difference == nil, let last = nodes.indices.last {
            guard let path = nodes[last].takeNext() else {
                nodes.removeLast()
                continue
            }
            if path.count == departures { return path }
            add(path, run)
        }
        return nil
    }

    /// Runs an inner node, which was a leaf before, for its children.
    private mutating func add(_ path: [Departure], _ run: (any Chooser) -> Run) {
        isBegun = true
        var (result, branches) = self.run(path, run)
        if path.count == departures - 1, former.popFirst() != result.digest || result.fault != nil {
            result.fault = Fault.difference
            difference = result
        }
        nodes.append(Node(path: path, branches: branches))
    }

    private func run(_ path: [Departure], _ run: (any Chooser) -> Run) -> (run: Run, branches: [Branch]) {
        let strategy = PathStrategy(path, hostsShareNothing: hostsShareNothing)
        let result = run(strategy)
        return (result, strategy.branches)
    }
}

/// Departs at the places of a path, and notes where a schedule may depart behind them.
private final class PathStrategy: Chooser {
    private let path: [Enumeration.Departure]
    private let hostsShareNothing: Bool
    private var taken = 0
    private var pointCount = 0
    private(set) var branches: [Enumeration.Branch] = []

    init(_ path: [Enumeration.Departure], hostsShareNothing: Bool) {
        (self.path, self.hostsShareNothing) = (path, hostsShareNothing)
    }

    func choose(at point: ChoicePoint) -> Int {
        if case .quantity = point.kind { return point.usual }
        // Faults are places here, too.
        let number = pointCount
        pointCount += 1
        if taken < path.count, path[taken].point == number {
            taken += 1
            return path[taken - 1].choice
        }
        guard taken == path.count else { return point.usual }
        let usual = point.machine(point.lanes[point.usual])
        let choices = point.lanes.indices.filter { index in
            guard index != point.usual else { return false }
            // Turns of threads on different machines commute if these share nothing: each sees only its own.
            return !(hostsShareNothing && point.kind == .thread && point.machine(point.lanes[index]) != usual)
        }
        if !choices.isEmpty { branches.append(Enumeration.Branch(point: number, choices: choices)) }
        return point.usual
    }
}
