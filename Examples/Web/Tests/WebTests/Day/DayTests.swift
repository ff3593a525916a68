import Testing

@testable import SimulatedDay

@Suite("A day of the daemon, simulated", .timeLimit(.minutes(10)))
struct DayTests {
    /// The number of days is in `DAYS`, such as `DAYS=100`.
    @Test(
        "answers are right, acknowledged uploads survive crashes, and no member of the chat misses a message",
        arguments: 0..<amount(of: "DAYS", usually: 1))
    func day(seed: Int) {
        let day = Day()
        _ = day.run(seed: UInt64(seed))
        #expect(day.failures.isEmpty, "seed \(seed): \(day.failures.prefix(3))")
        #expect(day.answers > 5_000 && day.stored.count > 1_000 && day.messages > 1_000, "seed \(seed)")
    }

    @Test("the same seed gives the same day")
    func same() {
        let days = (0..<2).map { _ in Day().run(seed: 9, hours: 6, clients: 50, members: 5, traced: true) }
        let difference = zip(days[0], days[1]).first { $0 != $1 }
        #expect(days[0] == days[1] && days[0].count > 1_000, "\(String(describing: difference))")
    }
}
