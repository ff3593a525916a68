extension RunLoop {
    /// The points of a run at which an ``Observer`` can be called. The values are those of CFRunLoop.
    public struct Activity: OptionSet, Sendable, Hashable, CustomStringConvertible {
        public let rawValue: UInt8

        public init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// A run begins. Once in each run.
        public static let entry = Activity(rawValue: 1)
        /// A pass begins. In every pass, before anything else.
        public static let beforeTimers = Activity(rawValue: 2)
        /// A pass is about to serve its sources. In every pass, after ``beforeTimers``.
        public static let beforeSources = Activity(rawValue: 4)
        /// The loop is about to sleep. An observer or another thread may still keep it awake.
        public static let beforeWaiting = Activity(rawValue: 32)
        /// The loop is awake after the sleep that ``beforeWaiting`` announced.
        public static let afterWaiting = Activity(rawValue: 64)
        /// A run ends. Once in each run.
        public static let exit = Activity(rawValue: 128)
        /// All six activities.
        public static let all: Activity = [.entry, .beforeTimers, .beforeSources, .beforeWaiting, .afterWaiting, .exit]

        /// The names of the activities, for example `entry, exit`; `none` for an empty set.
        public var description: String {
            let names: [(Self, String)] = [
                (.entry, "entry"), (.beforeTimers, "beforeTimers"), (.beforeSources, "beforeSources"),
                (.beforeWaiting, "beforeWaiting"), (.afterWaiting, "afterWaiting"), (.exit, "exit"),
            ]
            return isEmpty ? "none" : names.filter { contains($0.0) }.map(\.1).joined(separator: ", ")
        }
    }
}
