extension RunLoop {
    /// Groups of events of a loop. A ``LoopWatcher`` is told those that it follows. A value and `Sendable`.
    @_spi(Ports) public struct WatchedEvents: OptionSet, Sendable {
        public let rawValue: UInt8

        public init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// Runs, and calls of handlers. Each costs a reading of the clock at its begin and at its end.
        public static let calls = WatchedEvents(rawValue: 1)
        /// Sleeps, with the reasons for their ends.
        public static let sleeps = WatchedEvents(rawValue: 2)
        /// Armed items and posted blocks. A block costs an allocation more.
        public static let effects = WatchedEvents(rawValue: 4)
        /// Bytes of connections.
        public static let bytes = WatchedEvents(rawValue: 8)
        /// Trace events, whose words take most of their time.
        public static let trace = WatchedEvents(rawValue: 16)

        /// All events but those of the trace.
        public static let activity: WatchedEvents = [.calls, .sleeps, .effects, .bytes]

        /// Calls, and choices among those that wait, in an explored simulation.
        static let choices = WatchedEvents(rawValue: 32)
        /// Uses of the loop between its runs, while it is a guest.
        static let uses = WatchedEvents(rawValue: 64)
    }
}
