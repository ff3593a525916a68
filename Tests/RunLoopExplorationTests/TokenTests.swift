import RunLoopExploration
import TestSupport
import Testing

@Suite("Tokens of schedules")
struct TokenTests {
    @Test("a token survives a round trip through text, regardless of the names", arguments: 0..<50 as Range<UInt64>)
    func roundTrip(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let letters = ["a", "B", " ", "@", ">", "=", ";", "%", ":", "*", "é", "\n", "\"", "%4", "🙂"]
        func name() -> String {
            (0..<Int.random(in: 0...5, using: &generator)).map { _ in letters.randomElement(using: &generator)! }
                .joined()
        }
        let departures = (0..<Int.random(in: 0...4, using: &generator)).map { _ in
            ScheduleToken.Departure(
                place: name(), step: Int.random(in: 0...100, using: &generator),
                instead: Bool.random(using: &generator)
                    ? .other(name()) : .possibility(Int.random(in: 0...9, using: &generator)))
        }
        let token = ScheduleToken(seed: generator.next(), departures: departures)
        #expect(ScheduleToken("\(token)") == token, "seed \(seed): \(token)")
        #expect(!"\(token)".contains("\n"))
    }

    @Test(
        "a malformed token is refused",
        arguments: [
            "", "7", "x:", ":a@0>b", "7:a", "7:a@>b", "7:a@-1>b", "7:a@0", "7:a@0=x", "7:a@0=-1", "7:%@0>b",
            "7:%zz@0>b",
            "7:a@0>%ff", "-1:", "99999999999999999999:",
        ])
    func malformed(text: String) {
        #expect(ScheduleToken(text) == nil)
    }

    @Test("a token without departures is the usual schedule")
    func plain() {
        #expect(ScheduleToken("7:") == ScheduleToken(seed: 7))
        #expect("\(ScheduleToken(seed: 7))" == "7:")
    }
}
