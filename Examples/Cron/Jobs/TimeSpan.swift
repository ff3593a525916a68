import ArgumentParser

/// A time as people write it: a number and a unit, such as `30s`, `1.5h` or `250ms`.
struct TimeSpan: Hashable, Sendable, CustomStringConvertible {
    let duration: Duration
    let description: String

    /// - Returns: `nil` if the text is not a time span, or is longer than 30,000 years.
    init?(_ text: some StringProtocol) {
        let number = text.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
        guard let count = Double(number), let unit = Self.units[String(text.dropFirst(number.count))] else {
            return nil
        }
        let seconds = count * unit
        guard seconds < 1e12 else { return nil }
        duration = .seconds(seconds)
        description = String(text)
    }

    private static let units: [String: Double] = ["ms": 0.001, "s": 1, "m": 60, "h": 3_600, "d": 86_400]

    /// The number of seconds, if it is whole.
    var wholeSeconds: Int64? {
        let (seconds, rest) = duration.components
        return rest == 0 ? seconds : nil
    }
}

extension TimeSpan: ExpressibleByArgument {
    init?(argument: String) {
        self.init(argument)
    }
}
