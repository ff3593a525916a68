/// The events of a play as data: the timers, the times when the loop is busy or runs in another mode, and the actions
/// on the timers.
///
/// Times are nanoseconds from the start. The file format is described in the documentation (The scenario format).
package struct Scenario: Sendable, Equatable {
    package var duration: Int64
    package var commonModes: [String]
    package var timers: [TimerEntry]
    package var sources: [SourceEntry]
    package var links: [LinkEntry]
    package var named: [NamedEntry]
    package var countdowns: [CountdownEntry]
    package var busy: [BusyEntry]
    package var runs: [RunEntry]
    package var actions: [ActionEntry]

    package init(
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

    /// `true` if events name their thread: in scenarios with sources, links, named timers or countdowns.
    var namesThreads: Bool { !sources.isEmpty || !links.isEmpty || !named.isEmpty || !countdowns.isEmpty }

    /// A timer of the scenario.
    package struct TimerEntry: Sendable, Equatable {
        package var name: String
        /// The first fire date, absolute.
        package var first: Int64
        /// The effective interval; 0 for a one-shot.
        package var interval: Int64
        package var repeats: Bool
        /// The modes, which may include `common`.
        package var modes: [String]
        /// The time that each callback works.
        package var busy: Int64
        package var tolerance: Int64
        package var target: Target?

        package init(
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
    package struct Target: Sendable, Equatable {
        package enum Hold: String, Sendable, CaseIterable { case strong, weak }
        package var name: String
        package var hold: Hold

        package init(name: String, hold: Hold) {
            self.name = name
            self.hold = hold
        }
    }

    /// The queue where handlers are called.
    package enum Queue: String, Sendable, CaseIterable { case main, background }

    /// A GCD-style timer source.
    package struct SourceEntry: Sendable, Equatable {
        package var name: String
        /// The deadline, absolute.
        package var start: Int64
        /// The interval; 0 for a source that fires once.
        package var interval: Int64
        package var leeway: Int64
        package var queue: Queue
        /// The time that each handler works.
        package var busy: Int64
        /// `true` if the source is active from the start.
        package var isActive: Bool
        /// The delivery at which the source cancels itself in its handler.
        package var cancelAfter: Int?
        package var target: Target?

        package init(
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
    package struct LinkEntry: Sendable, Equatable {
        package var name: String
        /// The display's frames per second.
        package var rate: Int
        /// The preferred frames per second of the link; 0 for all.
        package var preferred: Int
        /// The modes, which may include `common`.
        package var modes: [String]
        /// The time that each callback works.
        package var busy: Int64
        /// `true` if a frame-rate meter counts the link's frames.
        package var hasMeter: Bool

        package init(
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

    /// A call that schedules a named timer, replacing an earlier timer of the same name.
    package struct NamedEntry: Sendable, Equatable {
        package var name: String
        package var at: Int64
        package var interval: Int64
        package var repeats: Bool
        package var fireInstantly: Bool
        package var queue: Queue
        /// The action's name in the output.
        package var action: String
        /// The time that the action works.
        package var busy: Int64

        package init(
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

    /// A countdown on the main loop, which waits for a `resume`.
    package struct CountdownEntry: Sendable, Equatable {
        package enum Pausing: String, Sendable, CaseIterable { case restarting, continuing }
        package var name: String
        /// The number of intervals to count; `nil` to count without end.
        package var from: Int?
        package var interval: Int64
        package var pausing: Pausing

        package init(
            name: String, from: Int? = nil, interval: Int64 = 1_000_000_000, pausing: Pausing = .restarting
        ) {
            self.name = name
            self.from = from
            self.interval = interval
            self.pausing = pausing
        }
    }

    /// A delayed call that works for a while.
    package struct BusyEntry: Sendable, Equatable {
        package var at: Int64
        package var duration: Int64
        /// The modes, which may include `common`.
        package var modes: [String]

        package init(at: Int64, duration: Int64, modes: [String] = ["default"]) {
            self.at = at
            self.duration = duration
            self.modes = modes
        }
    }

    /// A delayed call whose callback runs the loop nested in `mode` until `until`.
    package struct RunEntry: Sendable, Equatable {
        package var mode: String
        package var from: Int64
        package var until: Int64

        package init(mode: String, from: Int64, until: Int64) {
            self.mode = mode
            self.from = from
            self.until = until
        }
    }

    /// An action at a time.
    package struct ActionEntry: Sendable, Equatable {
        package enum Verb: Sendable, Equatable {
            /// Invalidates a timer or a link.
            case invalidate(item: String)
            case fire(timer: String)
            case setFireDate(timer: String, to: Int64)
            case drop(target: String)
            case addMode(String, item: String)
            case removeMode(String, item: String)
            case makeCommon(String)
            case activate(source: String)
            case suspend(source: String)
            /// Resumes a source, a link or a countdown.
            case resume(item: String)
            /// Pauses a link or a countdown.
            case pause(item: String)
            /// Cancels a source or a named timer.
            case cancel(item: String)
        }
        package var at: Int64
        package var verb: Verb

        package init(at: Int64, verb: Verb) {
            self.at = at
            self.verb = verb
        }
    }
}
