extension CalendarSchedule {
    /// An error in a cron expression.
    public struct CronError: Error, Sendable, Hashable, CustomStringConvertible {
        /// A field of a cron expression. The cases are in the order of the fields.
        public enum Field: Sendable, Hashable, CaseIterable {
            /// The minute, 0 to 59.
            case minute
            /// The hour, 0 to 23.
            case hour
            /// The day of the month, 1 to 31.
            case dayOfMonth
            /// The month, 1 to 12, or `jan` to `dec`.
            case month
            /// The day of the week, 0 to 7, or `sun` to `sat`.
            case dayOfWeek
        }

        /// The invalid field; `nil` if the expression has no five fields.
        public let field: Field?
        /// The invalid text: a part of the field, or the whole expression.
        public let found: String
        /// The allowed text, in words.
        public let allowed: String

        init(_ field: Field?, found: some StringProtocol, allowed: String) {
            self.field = field
            self.found = String(found)
            self.allowed = allowed
        }

        static func form(found: String) -> CronError {
            CronError(
                nil, found: found,
                allowed: "minute, hour, day of the month, month and day of the week, or "
                    + "@hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually")
        }

        /// The field, the invalid text, and the allowed text; for example `minute: found "60"; allowed: 0 to 59`.
        public var description: String {
            let place =
                switch field {
                case .minute: "minute"
                case .hour: "hour"
                case .dayOfMonth: "day of the month"
                case .month: "month"
                case .dayOfWeek: "day of the week"
                case nil: "cron expression"
                }
            return "\(place): found \"\(found)\"; allowed: \(allowed)"
        }
    }
}
