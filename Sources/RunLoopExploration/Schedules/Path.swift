@_spi(Ports) internal import RunLoopSimulation

/// A schedule with all its departures, by the numbers of their places in the run.
struct Path: Hashable {
    private(set) var departures: [Departure] = []
    /// `true` if orders that differ only in which host's threads go first count as the same.
    let hostsShareNothing: Bool

    /// A choice other than the usual one, at a place of the run.
    struct Departure: Hashable {
        let point: Int
        let choice: Int
    }

    /// A place where a schedule may depart from the usual choice.
    struct Branch: Hashable {
        let point: Int
        /// The choices other than the usual one.
        let choices: [Int]
    }

    /// Returns the path with one more departure.
    func departing(at point: Int, _ choice: Int) -> Path {
        var path = self
        path.departures.append(Departure(point: point, choice: choice))
        return path
    }
}

extension Path: LosslessStringConvertible {
    /// For example `3>1;7>2`, and with a `-` in front if hosts share nothing.
    var description: String {
        (hostsShareNothing ? "-" : "") + departures.map { "\($0.point)>\($0.choice)" }.joined(separator: ";")
    }

    init?(_ text: String) {
        hostsShareNothing = text.first == "-"
        for part in text.drop(while: { $0 == "-" }).split(separator: ";") {
            let numbers = part.split(separator: ">").compactMap { Int($0) }
            guard numbers.count == 2 else { return nil }
            departures.append(Departure(point: numbers[0], choice: numbers[1]))
        }
    }
}

extension Path.Branch: LosslessStringConvertible {
    /// For example `3>1>2`.
    var description: String { ([point] + choices).map { "\($0)" }.joined(separator: ">") }

    init?(_ text: String) {
        let numbers = text.split(separator: ">").compactMap { Int($0) }
        guard numbers.count > 1 else { return nil }
        (point, choices) = (numbers[0], Array(numbers[1...]))
    }
}

/// Departs at the places of a path, and notes where a schedule may depart after them.
final class PathStrategy: Chooser {
    private let path: Path
    private var taken = 0
    private var pointCount = 0
    private(set) var branches: [Path.Branch] = []

    init(_ path: Path) {
        self.path = path
    }

    func choose(at point: ChoicePoint) -> Int {
        if case .quantity = point.kind { return point.usual }
        // Faults are places here, too.
        let number = pointCount
        pointCount += 1
        if taken < path.departures.count, path.departures[taken].point == number {
            taken += 1
            return path.departures[taken - 1].choice
        }
        guard taken == path.departures.count else { return point.usual }
        let usual = point.machine(point.lanes[point.usual])
        let choices = point.lanes.indices.filter { index in
            guard index != point.usual else { return false }
            // Turns of threads on different machines commute if the machines share nothing: each sees only its own.
            return !(path.hostsShareNothing && point.kind == .thread && point.machine(point.lanes[index]) != usual)
        }
        if !choices.isEmpty { branches.append(Path.Branch(point: number, choices: choices)) }
        return point.usual
    }
}
