/// Numbers as a table shows them.
enum Figures {
    /// Returns seconds with a unit, in about five characters: `12.3 µs`.
    static func time(_ seconds: Double) -> String {
        let (size, sign) = (abs(seconds), seconds < 0 ? "-" : "")
        if size == 0 { return "0" }
        if size < 0.9995e-6 { return "\(sign)\(Int((size * 1e9).rounded())) ns" }
        if size < 0.9995e-3 { return "\(sign)\(number(size * 1e6)) µs" }
        if size < 0.9995 { return "\(sign)\(number(size * 1e3)) ms" }
        if size < 600 { return "\(sign)\(number(size)) s" }
        if size < 36_000 { return "\(sign)\(number(size / 60)) min" }
        return "\(sign)\(number(min(size, 1e12) / 3600)) h"
    }

    /// Returns a number with three digits.
    static func number(_ value: Double) -> String {
        if value >= 99.95 { return "\(Int(value.rounded()))" }
        let factor = value >= 9.995 ? 10.0 : 100
        let digits = Int((value * factor).rounded())
        let (whole, rest) = digits.quotientAndRemainder(dividingBy: Int(factor))
        let decimals = "\(rest)"
        return "\(whole)." + String(repeating: "0", count: (factor == 10 ? 1 : 2) - decimals.count) + decimals
    }

    /// Returns a rate or a count: `1234`, `56.7k`.
    static func count(_ value: Double) -> String {
        if value < 10, value != value.rounded() { return number(value) }
        if value < 100_000 { return "\(Int(value.rounded()))" }
        return value < 1e8 ? "\(number(value / 1e3))k" : "\(number(min(value, 1e18) / 1e6))M"
    }

    static func bytes(_ value: Int) -> String {
        let value = Double(value)
        if value < 10_000 { return "\(Int(value)) B" }
        if value < 1e7 { return "\(number(value / 1024)) KiB" }
        return "\(number(value / 1024 / 1024)) MiB"
    }

    static func percent(_ share: Double?) -> String { share.map { number($0 * 100) } ?? "-" }
}
