import ArgumentParser
import Testing

@testable import TTLStore

@Suite("Options")
struct OptionsTests {
    @Test(
        "numbers of bytes are read as Redis reads them",
        arguments: [
            ("0", 0), ("100", 100), ("5b", 5), ("2k", 2_000), ("2kb", 2_048), ("3m", 3_000_000), ("3MB", 3 << 20),
            ("1g", 1_000_000_000), ("1gb", 1 << 30), ("", nil), ("mb", nil), ("-1", nil), ("1.5mb", nil), ("1tb", nil),
            ("9223372036854775807gb", nil), ("99999999999999999999", nil),
        ])
    func bytes(text: String, count: Int?) {
        #expect(ByteCount(argument: text)?.bytes == count)
    }

    @Test("a time-out of any length can be given", arguments: ["0.001", "1e300", "9223372036854775807"])
    func timeouts(text: String) throws {
        let settings = try TTLStore.parse(["--idle-timeout", text]).serverSettings
        #expect(try #require(settings.idleTimeout) > .zero)
    }

    @Test(
        "options that make no sense are refused",
        arguments: [
            ["--idle-timeout", "-1"], ["--idle-timeout", "nan"], ["--max-clients", "0"], ["--fsync", "sometimes"],
            ["--maxmemory-policy", "all"], ["--snapshot", "a", "--log", "a"], ["--log-level", "loud"],
        ])
    func refused(arguments: [String]) {
        #expect(throws: (any Error).self) { try TTLStore.parse(arguments) }
    }
}
