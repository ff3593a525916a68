import RunLoopKit

@testable import Cron

/// The dates of Berlin in the nights when its clocks are changed, found without a calendar.
enum Nights {
    /// The period of summer time in 2026.
    private static let summer: Range<Int64> = 1_774_746_000..<1_792_890_000

    /// Returns half past two in the night that begins at a midnight of UTC: 01:00Z in the night that has none, and
    /// first at 00:30Z in the night that has two.
    static func halfPastTwo(after midnight: Int64) -> Int64 {
        if summer.contains(midnight + 5_400), !summer.contains(midnight) { return midnight + 3_600 }
        return midnight + (summer.contains(midnight) ? 1_800 : 5_400)
    }

    /// Returns the errors in the dates of two jobs around these nights: one for every night, and one for every hour.
    static func failures(of jobs: [Job]) -> [String] {
        let midnight = Year.start.secondsSince1970
        let nights = (0..<365).map { halfPastTwo(after: midnight + Int64($0) * 86_400) }
        let margin: Int64 = 40 * 86_400
        var failures = compare("gap", nights, summer.lowerBound - margin..<summer.upperBound + margin, jobs)
        let hours = (0..<365 * 24).map { midnight + Int64($0) * 3_600 + 17 * 60 }
        for change in [summer.lowerBound, summer.upperBound] {
            failures += compare("hourly", hours, change - 86_400..<change + 86_400, jobs)
        }
        return failures
    }

    private static func compare(_ name: String, _ dates: [Int64], _ range: Range<Int64>, _ jobs: [Job]) -> [String] {
        guard let job = jobs.first(where: { $0.name == name }) else { return [] }
        var date = RunLoop.WallTime(secondsSince1970: range.lowerBound)
        var own: [Int64] = []
        while let next = job.dates.next(after: date), next.secondsSince1970 < range.upperBound {
            own.append(next.secondsSince1970)
            date = next
        }
        let isSame = own == dates.filter { range.contains($0) && $0 != range.lowerBound }
        return isSame ? [] : ["\(name) has other dates"]
    }
}
