import Testing

@testable import Scenarios

@Suite("Seconds in words")
struct SecondsTests {
    @Test(
        "seconds are exact, with at least one decimal and no zeros to spare",
        arguments: [
            (0, "0.0"), (1, "0.000000001"), (2_000_000_000, "2.0"), (5_085_000_000, "5.085"), (100_000_000, "0.1"),
            (10_020_000_000, "10.02"), (123_456_789_123_456_789, "123456789.123456789"), (-1_500_000_000, "-1.5"),
            (.max, "9223372036.854775807"), (.min, "-9223372036.854775808"),
        ] as [(Int64, String)])
    func seconds(nanoseconds: Int64, text: String) {
        #expect(decimalSeconds(nanoseconds) == text)
    }

    @Test("seconds are rounded half up to the decimals asked for")
    func rounded() {
        #expect(roundedSeconds(1_999_500_000, decimals: 3, atLeast: 3) == "2.000")
        #expect(roundedSeconds(1_999_499_999, decimals: 3, atLeast: 3) == "1.999")
        #expect(roundedSeconds(3_596_000_000, decimals: 3, atLeast: 0) == "3.596")
        #expect(roundedSeconds(1, decimals: 9, atLeast: 0) == "0.000000001")
    }
}
