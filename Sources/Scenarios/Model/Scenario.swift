/// What happens on a timeline, as data: which timers there are, when the loop is busy, when it runs in another mode,
/// and what is done to the timers.
///
/// Times are nanoseconds from the start. The file format is described in the documentation (The scenario format).
public struct Scenario: Sendable, Equatable {
    public var duration: Int64
    public var commonModes: [String]
    public var timers: [TimerEntry]
    public var sources: [SourceEntry]
    public var links: [LinkEntry]
    public var named: [NamedEntry]
    public var countdowns: [CountdownEntry]
    public var busy: [BusyEntry]
    public var runs: [RunEntry]
    public var actions: [ActionEntry]

    public init(
        duration: Int64, commonModes: [String] = [], timers: [TimerEntry] = [], sources: [SourceEntry] = [],
        links: [LinkEntry] = [], named: [NamedEntry] = [], countdowns: [CountdownEntry] = [], busy: [BusyEntry] = [],
        runs: [RunEntry] = [], actions: [ActionEntry] = []
    ) {
        self.duration = duration
        self.commonModes = commonModes
        self.timers = timers
        self.sources = sources
        self.links = links
        self.named = named
        self.countdowns = countdowns
        self.busy = busy
        self.runs = runs
        self.actions = actions
    }

    /// A timer of the scenario.
    public struct TimerEntry: Sendable, Equatable {
        public var name: String
        /// The first fire date, absolute.
        public var first: Int64
        /// The effective interval; 0 for a one-shot.
        public var interval: Int64
        public var repeats: Bool
        /// May contain `common`.
        public var modes: [String]
        /// How long each callback works.
        public var busy: Int64
        public var tolerance: Int64
        public var target: Target?

        public init(
            name: String, first: Int64, interval: Int64 = 0, repeats: Bool = false, modes: [String] = ["default"],
            busy: Int64 = 0, tolerance: Int64 = 0, target: Target? = nil
        ) {
            self.name = name
            self.first = first
            self.interval = interval
            self.repeats = repeats
            self.modes = modes
            self.busy = busy
            self.tolerance = tolerance
            self.target = target
        }
    }

    /// The object that a timer or a source calls.
    public struct Target: Sendable, Equatable {
        public enum Hold: String, Sendable, CaseIterable { case strong, weak }
        public var name: String
        public var hold: Hold

        public init(name: String, hold: Hold) {
            self.name = name
            self.hold = hold
        }
    }

    /// A delayed call that works for a while.
    public struct BusyEntry: Sendable, Equatable {
        public var at: Int64
        public var duration: Int64
        /// May contain `common`.
        public var modes: [String]

        public init(at: Int64, duration: Int64, modes: [String] = ["default"]) {
            self.at = at
            self.duration = duration
            self.modes = modes
        }
    }

    /// A delayed call whose callback runs the loop nested in `mode` until `until`.
    public struct RunEntry: Sendable, Equatable {
        public var mode: String
        public var from: Int64
        public var until: Int64

        public init(mode: String, from: Int64, until: Int64) {
            self.mode = mode
            self.from = from
            self.until = until
        }
    }

    /// Something done at a time.
    public struct ActionEntry: Sendable, Equatable {
        public enum Verb: Sendable, Equatable {
            /// Of a timer or a link.
            case invalidate(item: String)
            case fire(timer: String)
            case setFireDate(timer: String, to: Int64)
            case drop(target: String)
            case addMode(String, item: String)
            case removeMode(String, item: String)
            case makeCommon(String)
            case activate(source: String)
            case suspend(source: String)
            /// Of a source, a link or a countdown.
            case resume(item: String)
            /// Of a link or a countdown.
            case pause(item: String)
            /// Of a source or a named timer.
            case cancel(item: String)
        }
        public var at: Int64
        public var verb: Verb

        public init(at: Int64, verb: Verb) {
            self.at = at
            self.verb = verb
        }
    }
}
