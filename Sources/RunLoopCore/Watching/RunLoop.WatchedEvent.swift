extension RunLoop {
    /// Something that a loop does, as a ``LoopWatcher`` is told of it. A value and `Sendable`.
    @_spi(Ports) public enum WatchedEvent: Sendable {
        // MARK: Calls

        /// A run in a mode begins; none of its observers has been called.
        case runBegan(in: Mode, at: Instant)
        /// A run in a mode has ended; its last observer has been called.
        case runEnded(in: Mode, at: Instant)
        /// A handler is about to be called, or a task to run until its next wait.
        case callBegan(Call)
        /// A handler has returned, or a task waits. A watcher is told no end of a call that began while nobody followed
        /// calls.
        case callEnded(Call, at: Instant)
        /// The call under way is about to take virtual time: its thread works, or waits for another one.
        case callTakesTime

        // MARK: Sleeps

        /// The loop is about to sleep, until a date at the latest. The sleeps of a guest's host have an end only.
        case fellAsleep(in: Mode, until: Instant, at: Instant)
        /// The loop has slept, and has not called anything yet.
        case wokeUp(in: Mode, by: WakeUpReason, at: Instant)

        // MARK: Effects

        /// An item that fires once was armed: a timer, a timeout, or a delayed call.
        case armed(Callee)
        /// This loop's thread has posted a block or woken a task, here or in another loop whose effects are followed. A
        /// thread without a loop tells nobody.
        case posted(Callee)
        /// The call that has just begun is the posted block with this number; the name is that of the posting thread if
        /// it is another one.
        case callFollows(UInt64, postedBy: String?)

        // MARK: Bytes

        /// A connection has received and sent bytes. Connections that were started before the watcher was added are not
        /// followed.
        case moved(received: Int, sent: Int, by: Int32, of: Callee)

        // MARK: Trace

        /// An event of ``RunLoop/trace``.
        case traced(TraceEvent)

        /// A call of a handler. A value and `Sendable`.
        public struct Call: Sendable {
            /// The handler.
            public let callee: Callee
            /// The mode in which the loop runs.
            public let mode: Mode
            /// The time when the call began, on the loop's clock.
            public let begin: Instant
        }

        /// The reason why a sleep has ended. A value and `Sendable`.
        public enum WakeUpReason: Sendable {
            /// An item is due, or the run has reached its limit.
            case date
            /// A source's descriptor is ready.
            case source(Callee)
            /// Another thread has posted something. The name is the system's, of at most 15 bytes.
            case thread(String)
            /// Another reason, for example a descriptor that is no longer watched.
            case other
        }

        /// Groups of events. A ``LoopWatcher`` is told those that it follows. A value and `Sendable`.
        public struct Groups: OptionSet, Sendable {
            /// The bits of the groups.
            public let rawValue: UInt8

            /// Creates groups from their bits.
            public init(rawValue: UInt8) { self.rawValue = rawValue }

            /// Runs, and calls of handlers. Each costs a reading of the clock at its begin and at its end.
            public static let calls = Groups(rawValue: 1)
            /// Sleeps, with the reasons for their ends.
            public static let sleeps = Groups(rawValue: 2)
            /// Armed items and posted blocks. A block costs an allocation more.
            public static let effects = Groups(rawValue: 4)
            /// Bytes of connections.
            public static let bytes = Groups(rawValue: 8)
            /// Trace events, whose words take most of their time.
            public static let trace = Groups(rawValue: 16)

            /// All events but those of the trace.
            public static let activity: Groups = [.calls, .sleeps, .effects, .bytes]

            /// Calls, and choices among those that wait, in an explored simulation.
            static let choices = Groups(rawValue: 32)
            /// Uses of the loop between its runs, while it is a guest.
            static let uses = Groups(rawValue: 64)
        }
    }
}
