#if Adapters
internal import Glibc
internal import RunLoopKit

/// The value of the field `Date`, which is made once a second on each loop.
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

    private static func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
}
#endif
