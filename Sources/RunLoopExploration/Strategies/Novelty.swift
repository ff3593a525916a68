@_spi(Ports) internal import RunLoopSimulation

/// The schedules that have shown something new: a pair of turns in an order that no schedule had before, or a mark.
struct Novelty {
    /// The last of these schedules.
    private var schedules: [ScheduleToken] = []
    private static let (fewSchedules, mostSchedules) = (4, 32)
    /// The largest number of departures of a kept schedule: for longer ones, a departure more or less hardly matters.
    private static let mostDepartures = 1000
    /// The pairs seen so far, by their hashes.
    private var pairs = [UInt64](repeating: 0, count: pairCount / 64)
    private static let pairCount = 1 << 16
    private var marks: Set<String> = []

    /// Draws one of the schedules, half of the time one of the last few.
    func draw(_ numbers: inout SeededNumbers) -> ScheduleToken? {
        schedules.suffix(Bool.random(using: &numbers) ? Self.fewSchedules : Self.mostSchedules)
            .randomElement(using: &numbers)
    }

    /// Looks for something new in the run of a schedule: among its pairs of turns, and its marks.
    mutating func note(_ schedule: ScheduleToken, _ found: [UInt16], _ marks: Simulation.Marks) {
        var isNew = false
        for pair in found {
            let (word, bit) = (Int(pair) / 64, UInt64(1) << (pair % 64))
            if pairs[word] & bit == 0 { (pairs[word], isNew) = (pairs[word] | bit, true) }
        }
        for (mark, count) in marks.counts where count > 0 && self.marks.insert(mark).inserted { isNew = true }
        guard isNew, schedule.departures.count <= Self.mostDepartures else { return }
        if schedules.count == Self.mostSchedules { schedules.removeFirst() }
        schedules.append(schedule)
    }
}
