import ExampleTestSupport
import RunLoopSimulation
import Testing

@Suite("A year of Cron")
struct YearTests {
    /// The number of seeds; `YEARS=100` sets it.
    private static let years = amount(of: "YEARS", usually: 1)

    /// The moments that the first year meets. Of a thousand years, one may miss some by chance.
    private static let marks = [
        "dates were missed", "a date was skipped, because its job still ran", "a run took too long",
        "the state could not be written", "a disk was full", "a clock was set back", "file events were lost",
        "a host crashed", "a host started again", "a process was killed", "a connection was refused",
        "a write was partial",
    ]

    @Test("each date has its run or a reason for none, and nothing runs that should not", arguments: 0..<years)
    func year(seed: Int) {
        let year = Year(seed: UInt64(seed))
        _ = year.run()
        let missing = year.marks.missing(of: Self.marks)
        #expect(missing.isEmpty || seed > 0, "seed \(seed) has not met: \(missing)")
        #expect(
            year.cron.failures.isEmpty && year.cron.diary.runs.count > 2_000,
            "seed \(seed): \(year.cron.failures)\n\(year.cron.picture)")
    }

    @Test("the same seed gives the same year")
    func same() {
        let years = (0..<2).map { _ in Year(seed: 9).run(days: 30, traced: true) }
        let difference = zip(years[0], years[1]).first { $0 != $1 }
        #expect(years[0] == years[1] && years[0].count > 1_000, "\(String(describing: difference))")
    }
}
