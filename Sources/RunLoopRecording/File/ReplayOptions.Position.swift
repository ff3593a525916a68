extension ReplayOptions {
    /// An event of a thread.
    public struct Position: Sendable, Hashable, LosslessStringConvertible {
        /// The number of the thread; 0 is the thread that called ``withReplay(of:options:_:)``.
        public var thread: Int
        /// The number of the event on the thread, from 0.
        public var event: UInt64

        /// Creates the position of an event, on the first thread by default.
        public init(event: UInt64, ofThread thread: Int = 0) {
            (self.thread, self.event) = (thread, event)
        }

        /// Creates a position from a text such as `1234`, or `2:1234` with the number of the thread.
        public init?(_ description: String) {
            let parts = description.split(separator: ":", omittingEmptySubsequences: false)
            guard parts.count <= 2, let event = parts.last.flatMap({ UInt64($0) }) else { return nil }
            guard let thread = parts.count == 2 ? Int(parts[0]) : 0, thread >= 0 else { return nil }
            self.init(event: event, ofThread: thread)
        }

        public var description: String { "\(thread):\(event)" }
    }
}
