#if Adapters
internal import Glibc
internal import RunLoopKit

/// The dates of HTTP's fields. An object has the value of the field `Date`, which is made once a second on each loop.
final class HTTPDate {
    static let ofLoop = RunLoop.Local { _ in HTTPDate() }

    private var second = Int64.min
    private var text = ""

    func now(on loop: RunLoop) -> String {
        let second = loop.wallTime.secondsSince1970
        if self.second != second { (self.second, text) = (second, Self.text(of: second)) }
        return text
    }

    private static let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    /// Returns a second in the form of RFC 9110, section 5.6.7, which no locale changes.
    static func text(of second: Int64) -> String {
        var (second, date) = (time_t(second), tm())
        gmtime_r(&second, &date)
        let (day, month) = (days[Int(date.tm_wday)], months[Int(date.tm_mon)])
        let time = "\(two(date.tm_hour)):\(two(date.tm_min)):\(two(date.tm_sec))"
        return "\(day), \(two(date.tm_mday)) \(month) \(date.tm_year + 1900) \(time) GMT"
    }

    /// Reads a second in one of the three forms that RFC 9110, section 5.6.7, has recipients accept; `nil` if the text is none.
    static func second(of text: String) -> Int64? {
        // Sun, 06 Nov 1994 08:49:37 GMT; Sunday, 06-Nov-94 08:49:37 GMT; Sun Nov  6 08:49:37 1994
        var parts = text.split(whereSeparator: { " ,-".contains($0) }).dropFirst().map(String.init)
        guard text.utf8.count < 40, parts.count == 4 || parts.count == 5 && parts.removeLast() == "GMT" else {
            return nil
        }
        if months.contains(parts[0]) { parts = [parts[1], parts[0], parts[3], parts[2]] }
        let times = parts[3].split(separator: ":", omittingEmptySubsequences: false).map { number(String($0)) }
        guard let day = number(parts[0]), let month = months.firstIndex(of: parts[1]), var year = number(parts[2]),
            times.count == 3, let hour = times[0], hour < 24, let minute = times[1], minute < 60,
            let second = times[2], second <= 60
        else { return nil }
        // Two digits mean the years 1970 to 2069.
        if parts[2].utf8.count == 2 { year += year < 70 ? 2000 : 1900 }
        var date = tm()
        (date.tm_year, date.tm_mon, date.tm_mday) = (year - 1900, Int32(month), day)
        (date.tm_hour, date.tm_min, date.tm_sec) = (hour, minute, second)
        let result = timegm(&date)
        // A day that the month does not have has moved to the next one.
        return date.tm_mon == Int32(month) || second == 60 ? Int64(result) : nil
    }

    private static func number(_ text: String) -> Int32? {
        text.utf8.count <= 4 && text.utf8.allSatisfy { (48...57).contains($0) } ? Int32(text) : nil
    }

    private static func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
}
#endif
