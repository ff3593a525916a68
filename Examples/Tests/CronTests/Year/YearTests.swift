import ExampleTestSupport
import Testing

@Suite("A year of Cron")
struct YearTests {
    /// The number of seeds; `YEARS=100` sets it.
    private static let years = amount(of: "YEARS", usually: 1)

    @Test("each date has its run or a reason for none, and nothing runs that should not", arguments: 0..<years)
    func year(seed: Int) {
        let year = Year(seed: UInt64(seed))
        _ = year.run()
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
