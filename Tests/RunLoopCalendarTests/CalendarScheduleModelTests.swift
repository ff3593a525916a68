import FoundationEssentials
import RunLoopCalendar
import RunLoopFoundation
import RunLoopKit
import TestSupport
import Testing

@Suite("Dates of a calendar beside a naive model")
struct CalendarScheduleModelTests {
    @Test(
        "the dates around a change of offset agree with a walk through every half minute",
        arguments: [
            ("Europe/Berlin", "2026-03-29T01:00:00Z"), ("Europe/Berlin", "2026-10-25T01:00:00Z"),
            ("America/New_York", "2026-03-08T07:00:00Z"), ("America/New_York", "2026-11-01T06:00:00Z"),
            ("Australia/Lord_Howe", "2026-04-04T15:00:00Z"), ("Australia/Lord_Howe", "2026-10-03T15:30:00Z"),
            ("America/Sao_Paulo", "2018-02-18T02:00:00Z"), ("America/Sao_Paulo", "2018-11-04T03:00:00Z"),
            ("America/St_Johns", "2010-03-14T03:31:00Z"), ("America/St_Johns", "2010-11-07T02:31:00Z"),
            ("Africa/Cairo", "2010-04-29T22:00:00Z"), ("Asia/Kathmandu", "1985-12-31T18:30:00Z"),
            ("Antarctica/Troll", "2026-03-29T01:00:00Z"), ("Antarctica/Troll", "2026-10-25T01:00:00Z"),
            ("Pacific/Apia", "2011-12-30T10:00:00Z"), ("Pacific/Kwajalein", "1969-09-30T13:00:00Z"),
            ("Africa/Monrovia", "1972-01-07T00:44:30Z"), ("UTC", "2028-03-01T00:00:00Z"),
        ])
    func model(zone: String, change: String) {
        let zone = TimeZone(identifier: zone)!
        let walk = Walk(zone: zone, around: time(change).secondsSince1970)
        for seed in 0..<40 as Range<UInt64> {
            var random = SeededGenerator(seed: seed)
            let fields = Fields(using: &random)
            // Months and days that never come are refused.
            guard let schedule = try? CalendarSchedule(cron: fields.expression, in: zone) else { continue }
            let expected = walk.dates(of: fields)
            let near = walk.change - 4 * 3_600..<walk.change + 4 * 3_600
            for range in [walk.start..<walk.end, near, near] {
                let start = Int64.random(in: range, using: &random)
                var found: [Int64] = []
                var time = RunLoop.WallTime(secondsSince1970: start)
                while let next = schedule.next(after: time), next.secondsSince1970 < walk.end, found.count < 50 {
                    found.append(next.secondsSince1970)
                    time = next
                }
                #expect(
                    found == Array(expected.drop { $0 <= start }.prefix(50)),
                    "seed \(seed): \(schedule), after \(RunLoop.WallTime(secondsSince1970: start))")
            }
        }
    }
}

/// Five random fields and their values.
private struct Fields {
    let sets: [Set<Int>]
    let stars: [Bool]
    let expression: String

    init(using random: inout SeededGenerator) {
        var (sets, stars, texts): ([Set<Int>], [Bool], [String]) = ([], [], [])
        for (range, odds) in [(0...59, 1), (0...23, 2), (1...31, 3), (1...12, 4), (0...7, 3)] {
            let step = Int.random(in: 2...5, using: &random)
            let low = Int.random(in: range, using: &random)
            let high = Int.random(in: low...range.upperBound, using: &random)
            let values = (0..<Int.random(in: 1...4, using: &random)).map { _ in Int.random(in: range, using: &random) }
            let kind = Int.random(in: 0...odds + 3, using: &random)
            switch kind {
            case 0:
                sets.append(Set(stride(from: range.lowerBound, through: range.upperBound, by: step)))
                texts.append("*/\(step)")
            case 1:
                sets.append(Set(low...high))
                texts.append("\(low)-\(high)")
            case 2:
                sets.append(Set(stride(from: low, through: high, by: step)))
                texts.append("\(low)-\(high)/\(step)")
            case 3:
                sets.append(Set(values))
                texts.append(values.map(String.init).joined(separator: ","))
            default:
                sets.append(Set(range))
                texts.append("*")
            }
            stars.append(kind == 0 || kind > 3)
        }
        self.sets = sets
        self.stars = stars
        expression = texts.joined(separator: " ")
    }

    func contains(_ time: Walk.Local) -> Bool {
        guard sets[0].contains(time.minute), sets[1].contains(time.hour), sets[3].contains(time.month) else {
            return false
        }
        let day = sets[2].contains(time.day)
        let weekday = sets[4].contains(time.weekday) || time.weekday == 0 && sets[4].contains(7)
        return stars[2] || stars[4] ? day && weekday : day || weekday
    }

    var everyHour: Bool { sets[1].count == 24 }
}

/// The local times that a zone's clocks show in the days around an instant, in steps of half a minute.
private struct Walk {
    struct Local: Hashable {
        var month, day, weekday, hour, minute: Int
    }

    struct Step {
        let instant: Int64
        /// The minute that begins.
        let shown: Local?
        /// The minutes skipped since the previous step.
        let skipped: [Local]
        /// `true` if the minute was shown before.
        let again: Bool
    }

    let change: Int64
    let start: Int64
    let end: Int64
    private let steps: [Step]

    init(zone: TimeZone, around change: Int64) {
        self.change = change
        start = change - 2 * 86_400
        end = change + 2 * 86_400
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = .gmt
        func local(_ seconds: Int64) -> Local {
            let parts = calendar.dateComponents(
                [.month, .day, .weekday, .hour, .minute], from: Date(timeIntervalSince1970: Double(seconds)))
            return Local(
                month: parts.month!, day: parts.day!, weekday: parts.weekday! - 1, hour: parts.hour!,
                minute: parts.minute!)
        }
        var steps: [Step] = []
        var seen: Set<Int64> = []
        var before: Int64?
        // Begins earlier, to record the minutes already shown.
        for instant in stride(from: start - 2 * 86_400, to: end, by: 30) {
            let seconds = instant + Int64(zone.secondsFromGMT(for: Date(timeIntervalSince1970: Double(instant))))
            let begins = seconds % 60 == 0
            var skipped: [Local] = []
            if let before, seconds > before + 30 {
                skipped = stride(from: before + 30, to: seconds, by: 30).filter { $0 % 60 == 0 }.map(local)
            }
            let again = begins && !seen.insert(seconds).inserted
            if begins || !skipped.isEmpty {
                steps.append(
                    Step(instant: instant, shown: begins ? local(seconds) : nil, skipped: skipped, again: again))
            }
            before = seconds
        }
        self.steps = steps
    }

    /// Returns the dates by the stated rules.
    func dates(of fields: Fields) -> [Int64] {
        steps.filter { step in
            let shown = step.shown.map(fields.contains) ?? false
            if fields.everyHour { return shown }
            return shown && !step.again || step.skipped.contains(where: fields.contains)
        }.map(\.instant)
    }
}
