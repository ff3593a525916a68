extension Console {
    /// The loops of a process at one time. A ``Console`` sends one at each interval, as a line of JSON.
    ///
    /// The names of the members are those of the properties here. Durations are seconds, dates are seconds of the loop's
    /// clock, shares go from 0 to 1. A member without a value is left out. Readers ignore members that they do not know;
    /// ``version`` changes when one goes or changes its meaning. A value and `Sendable`.
    public struct Snapshot: Sendable, Hashable, Codable {
        /// The version of this form: 1.
        public internal(set) var version = 1
        /// Counts the snapshots of a console. One that is missing was dropped, because this reader had not read the one
        /// before.
        public internal(set) var number: Int
        /// The number of the process.
        public internal(set) var process: Int
        /// The name of the program.
        public internal(set) var program: String
        /// The loops, in the order in which they were added. One that has ended is not among them.
        public internal(set) var loops: [Loop]
        /// Cycles among tasks of the loops: each task waits for the next one, the last for the first. None of them can
        /// continue, unless a wait among them is cancelled.
        public internal(set) var cycles: [[WaitingTask]]
    }

    /// One loop in a snapshot.
    public struct Loop: Sendable, Hashable, Codable {
        /// The name that it was added by.
        public internal(set) var name: String
        /// Whether it sleeps, is busy, or is blocked.
        public internal(set) var state: LoopState
        /// How long ago the loop answered last; `nil` if it never did. What only the loop's thread knows is as old:
        /// ``lateness``, ``lines``, ``due``, ``connections`` and ``tasks``.
        public internal(set) var age: Double?
        /// The modes of the runs under way at that time, the innermost last.
        public internal(set) var modes: [String] = []
        /// Passes each second; 0 while the loop does not answer. The console's own questions are among them.
        public internal(set) var passes = 0.0
        /// Sleeps each second; 0 while the loop does not answer.
        public internal(set) var sleeps = 0.0
        /// Calls of timers each second; 0 while the loop does not answer.
        public internal(set) var fires = 0.0
        /// Jobs of tasks each second; 0 while the loop does not answer.
        public internal(set) var jobs = 0.0
        /// The share of the time since the last snapshot that the loop slept; `nil` if nothing records.
        public internal(set) var asleep: Double?
        /// The share of that time that the loop's thread computed.
        public internal(set) var computing: Double?
        /// How late the deadlines were that the loop served between its last two answers.
        public internal(set) var lateness = Lateness()
        /// The handler that is being called, if the loop's run waits for its return.
        public internal(set) var call: Call?
        /// The handlers that were called since the last snapshot, those that took most time first; 100 at most.
        public internal(set) var handlers: [Handler] = []
        /// The items of the loop by the lines of the program that made them, those that grow first, then those with most
        /// items; 100 at most.
        public internal(set) var lines: [Line] = []
        /// The items that are due next, the first one first; 100 at most.
        public internal(set) var due: [Due] = []
        /// The connections, those that moved most bytes first; 100 at most.
        public internal(set) var connections: [Connection] = []
        /// The tasks; 1,000 at most.
        public internal(set) var tasks: [Task] = []
        /// How many items, connections and tasks there are in all.
        public internal(set) var counts = Counts()
    }

    /// The states of a loop.
    public enum LoopState: String, Sendable, Hashable, Codable {
        /// The loop sleeps, and answers.
        case asleep
        /// The loop is busy, and answers.
        case busy
        /// The loop calls a handler that has not returned for longer than an interval.
        case blocked
        /// It does not answer, and calls no handler that the console knows: its thread does not run it, or calls one since
        /// before anybody looked.
        case silent
    }

    /// How late deadlines were served.
    public struct Lateness: Sendable, Hashable, Codable {
        /// How many deadlines there were.
        public internal(set) var count = 0
        /// The lateness that half of them did not exceed.
        public internal(set) var half = 0.0
        /// The lateness that 99 % of them did not exceed.
        public internal(set) var most = 0.0
        /// The lateness that none of them exceeded.
        public internal(set) var all = 0.0
    }

    /// A call that is under way.
    public struct Call: Sendable, Hashable, Codable {
        /// The kind of the handler, for example `timer`.
        public internal(set) var kind: String
        /// The handler's name.
        public internal(set) var name: String?
        /// The line of the program that made it; of a task, the line that started it.
        public internal(set) var origin: String
        /// For how long the call has lasted.
        public internal(set) var time: Double
        /// Whether the loop's thread waits for something, such as a lock or a file, and does not compute.
        public internal(set) var isWaiting: Bool
    }

    /// The calls of one handler since the last snapshot.
    public struct Handler: Sendable, Hashable, Codable {
        /// The kind of the handler, for example `timer`.
        public internal(set) var kind: String
        /// The handler's name.
        public internal(set) var name: String?
        /// The line of the program that made it; of a task, the line that started it.
        public internal(set) var origin: String
        /// How many calls began.
        public internal(set) var calls: Int
        /// The share of the time that they took, without the calls and sleeps that were nested in them.
        public internal(set) var share: Double
        /// The longest call, with the calls that were nested in it; of a call that is under way, until now.
        public internal(set) var longest: Double
    }

    /// The items of one kind that a line of the program has made.
    public struct Line: Sendable, Hashable, Codable {
        /// The kind of the items, for example `timer`.
        public internal(set) var kind: String
        /// Their name, if all have the same.
        public internal(set) var name: String?
        /// The line of the program.
        public internal(set) var origin: String
        /// How many of them the loop has.
        public internal(set) var count: Int
        /// Their growth, if they have become more several times and never less: they may be leaking.
        public internal(set) var growth: Growth?
    }

    /// The growth of a number of items.
    public struct Growth: Sendable, Hashable, Codable {
        /// How many more there are than at its begin.
        public internal(set) var items: Int
        /// How long ago it began.
        public internal(set) var time: Double
    }

    /// Something with a deadline.
    public struct Due: Sendable, Hashable, Codable {
        /// The kind of the item, for example `timer`.
        public internal(set) var kind: String
        /// The item's name.
        public internal(set) var name: String?
        /// The line of the program that made it.
        public internal(set) var origin: String
        /// How long until then, from the loop's last answer, or from now if it does not answer; negative if it is late.
        public internal(set) var time: Double
        /// More about it in words, for example `every 0.5 seconds`.
        public internal(set) var detail: String?
    }

    /// A stream socket that a loop watches.
    public struct Connection: Sendable, Hashable, Codable {
        /// The descriptor.
        public internal(set) var descriptor: Int32
        /// The name of the source that watches it.
        public internal(set) var name: String?
        /// The line of the program that made it.
        public internal(set) var origin: String
        /// The address of the peer, if it has one.
        public internal(set) var peer: String?
        /// The bytes that have come; `nil` unless it is TCP, where the kernel counts them.
        public internal(set) var received: Int?
        /// The bytes that the peer has acknowledged; `nil` unless it is TCP.
        public internal(set) var sent: Int?
        /// The bytes that have come and that the program has not read yet.
        public internal(set) var unread: Int
        /// The bytes that the kernel has for the peer, which has not acknowledged them.
        public internal(set) var unsent: Int
    }

    /// A task of a loop.
    public struct Task: Sendable, Hashable, Codable {
        /// Distinguishes it from all tasks of the process.
        public internal(set) var number: Int
        /// The task's name.
        public internal(set) var name: String?
        /// The line of the program that started it.
        public internal(set) var origin: String
        /// The task's activity, for example `sleeps until 2.500000000`; `nil` if it waits for something unknown to the loop,
        /// such as a continuation or an actor elsewhere.
        public internal(set) var activity: String?
    }

    /// A task in a cycle of waiting.
    public struct WaitingTask: Sendable, Hashable, Codable {
        /// The name of the loop.
        public internal(set) var loop: String
        /// The number of the task.
        public internal(set) var number: Int
        /// The task's name.
        public internal(set) var name: String?
        /// The line of the program that started it.
        public internal(set) var origin: String
    }

    /// How much a loop has.
    public struct Counts: Sendable, Hashable, Codable {
        /// The items: whatever is scheduled, tasks and waiting blocks too.
        public internal(set) var items = 0
        /// The connections.
        public internal(set) var connections = 0
        /// The tasks.
        public internal(set) var tasks = 0
    }
}
