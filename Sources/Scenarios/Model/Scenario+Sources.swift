// What a scenario has besides timers of the run loop.

extension Scenario {
    /// Where handlers are called.
    public enum Queue: String, Sendable, CaseIterable { case main, background }

    /// A GCD-style timer source.
    public struct SourceEntry: Sendable, Equatable {
        public var name: String
        /// The deadline, absolute.
        public var start: Int64
        /// 0 for a source that fires once.
        public var interval: Int64
        public var leeway: Int64
        public var queue: Queue
        /// How long each handler works.
        public var busy: Int64
        /// Whether it is active from the start.
        public var isActive: Bool
        /// At which delivery it cancels itself in its handler.
        public var cancelAfter: Int?
        public var target: Target?

        public init(
            name: String, start: Int64, interval: Int64 = 0, leeway: Int64 = 0, queue: Queue = .main, busy: Int64 = 0,
            isActive: Bool = true, cancelAfter: Int? = nil, target: Target? = nil
        ) {
            self.name = name
            self.start = start
            self.interval = interval
            self.leeway = leeway
            self.queue = queue
            self.busy = busy
            self.isActive = isActive
            self.cancelAfter = cancelAfter
            self.target = target
        }
    }

    /// A display link.
    public struct LinkEntry: Sendable, Equatable {
        public var name: String
        /// Frames a second of the display.
        public var rate: Int
        /// The frames a second that the link asks for; 0 for all.
        public var preferred: Int
        /// May contain `common`.
        public var modes: [String]
        /// How long each callback works.
        public var busy: Int64
        /// Whether a frame-rate meter counts its frames.
        public var hasMeter: Bool

        public init(
            name: String, rate: Int = 60, preferred: Int = 0, modes: [String] = ["default"], busy: Int64 = 0,
            hasMeter: Bool = false
        ) {
            self.name = name
            self.rate = rate
            self.preferred = preferred
            self.modes = modes
            self.busy = busy
            self.hasMeter = hasMeter
        }
    }

    /// A call that schedules a named timer, anew if there is one of the name.
    public struct NamedEntry: Sendable, Equatable {
        public var name: String
        public var at: Int64
        public var interval: Int64
        public var repeats: Bool
        public var fireInstantly: Bool
        public var queue: Queue
        /// What the action is called in the output.
        public var action: String
        /// How long the action works.
        public var busy: Int64

        public init(
            name: String, at: Int64 = 0, interval: Int64, repeats: Bool = false, fireInstantly: Bool = false,
            queue: Queue = .background, action: String? = nil, busy: Int64 = 0
        ) {
            self.name = name
            self.at = at
            self.interval = interval
            self.repeats = repeats
            self.fireInstantly = fireInstantly
            self.queue = queue
            self.action = action ?? name
            self.busy = busy
        }
    }

    /// A countdown on the main loop; it waits for a `resume`.
    public struct CountdownEntry: Sendable, Equatable {
        public enum Pausing: String, Sendable, CaseIterable { case restarting, continuing }
        public var name: String
        /// How many intervals to count; none to count without end.
        public var from: Int?
        public var interval: Int64
        public var pausing: Pausing

        public init(
            name: String, from: Int? = nil, interval: Int64 = 1_000_000_000, pausing: Pausing = .restarting
        ) {
            self.name = name
            self.from = from
            self.interval = interval
            self.pausing = pausing
        }
    }

    /// Whether events say on which thread they happened: where something chooses its thread or its frames.
    var namesThreads: Bool { !sources.isEmpty || !links.isEmpty || !named.isEmpty || !countdowns.isEmpty }
}
