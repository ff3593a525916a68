@_spi(Ports) internal import RunLoopSimulation

/// Decides for each schedule which kinds of faults it has, and when, and leaves all other choices to a strategy.
///
/// A schedule does not have all kinds at once, as in swarm testing (Groce and others) and in FoundationDB's simulation:
/// a kind that happens often hides bugs that need another one. The moments are drawn over the known length of a run, so
/// a fault at the thousandth place is as likely as at the tenth.
struct Swarm: Chooser {
    private var strategy: any Chooser
    private var numbers: SeededNumbers
    /// The places at which each kind happens.
    private var moments: [String: [Int]] = [:]

    /// - Parameters:
    ///   - number: the number of the schedule.
    ///   - length: the known length of a run; kinds not known yet do not happen.
    init(_ strategy: any Chooser, for number: Int, seed: UInt64, length: RunLength) {
        (self.strategy, numbers) = (strategy, SeededNumbers(seed: seed, for: "faults of schedule \(number)"))
        var kinds = length.faults.keys.sorted()
        kinds.shuffle(using: &numbers)
        let counts = [0, 1, 1, 1, 2, 3, (kinds.count + 1) / 2, kinds.count]
        for kind in kinds.prefix(counts.randomElement(using: &numbers)!) {
            var start = SeededNumbers(seed: seed, for: "moments of \(kind)")
            let turn = start.next() &+ UInt64(number) &* Self.goldenSection
            moments[kind] = Self.moments(among: length.faults[kind]!, turn, &numbers)
        }
    }

    /// The largest distance between a fault and one that follows it, for example while the program recovers.
    private static let near = 32

    /// The golden section, as a part of 2 to the 64th. Each of its multiples lies in the largest gap between the
    /// earlier ones, so that the moments of all schedules, and of every second or eighth one, cover a run evenly.
    private static let goldenSection: UInt64 = 0x9e37_79b9_7f4a_7c15

    /// Draws the number of times that a kind happens, and the places: usually once.
    ///
    /// - Parameter turn: the place of the first moment, as a part of 2 to the 64th.
    private static func moments(among length: Int, _ turn: UInt64, _ numbers: inout SeededNumbers) -> [Int] {
        let many = 1 << Int.random(in: 0...min(6, length.bitWidth - length.leadingZeroBitCount), using: &numbers)
        let count = [1, 1, 2, many].randomElement(using: &numbers)!
        let first = Int(turn.multipliedFullWidth(by: UInt64(length)).high)
        if count == 2, Bool.random(using: &numbers) {
            return [first, first + Int.random(in: 1...near, using: &numbers)]
        }
        var moments = [first]
        while moments.count < min(count, length) {
            let moment = Int.random(in: 0..<length, using: &numbers)
            if !moments.contains(moment) { moments.append(moment) }
        }
        return moments
    }

    mutating func choose(at point: ChoicePoint) -> Int {
        guard case .fault(let kind, let place, let most) = point.kind else { return strategy.choose(at: point) }
        guard let drawn = moments[kind] else { return 0 }
        // Otherwise only the first ones of many would happen.
        if place == 0, drawn.count > most { moments[kind] = Array(drawn.prefix(most)) }
        guard moments[kind]!.contains(place) else { return 0 }
        return Int.random(in: 1..<point.lanes.count, using: &numbers)
    }
}
