import Testing

@testable import Scenarios

@Suite("Times in a scenario")
struct FieldsTests {
    @Test(
        "a time is rounded to the nearest nanosecond from its decimal text",
        arguments: [
            ("9.596", 9_596_000_000), ("5.085", 5_085_000_000), ("0.1", 100_000_000), ("1e-9", 1),
            ("1E+2", 100_000_000_000),
            ("123456789.123456789", 123_456_789_123_456_789), ("1e3", 1_000_000_000_000), ("0", 0), ("-0.0", 0),
            ("0.0000000005", 1), ("0.00000000049", 0), ("0.9999999995", 1_000_000_000), ("2.0000000014", 2_000_000_001),
            ("4.35", 4_350_000_000), ("1.1234567895", 1_123_456_790), ("6311520000", 6_311_520_000_000_000_000),
        ] as [(String, Int64)])
    func rounding(text: String, nanoseconds: Int64) throws {
        #expect(try read("{\"duration\": \(text)}").duration == nanoseconds)
    }

    @Test(
        "a repeating interval that is not positive is a tenth of a millisecond",
        arguments: ["0", "-1", "-0.5", "-1e30", "0.0000000001"])
    func smallestInterval(text: String) throws {
        let timer = try read(#"{"duration":1,"timers":[{"name":"T","repeats":true,"interval":\#(text)}]}"#).timers[0]
        #expect(timer.interval == 100_000)
        #expect(timer.first == 100_000)
    }
}
