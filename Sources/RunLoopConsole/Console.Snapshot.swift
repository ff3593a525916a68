internal import FoundationEssentials

extension Console {
    /// The loops of a process at one time. A ``Console`` sends a snapshot at each interval, as a line of JSON.
    ///
    /// The members have the names of the properties. Durations are seconds, dates are seconds of the loop's clock,
    /// shares are from 0 to 1. A member without a value is left out. Readers ignore members that they do not know;
    /// ``version`` changes when one is removed or changes its meaning. A value and `Sendable`.
    public struct Snapshot: Sendable, Hashable, Codable {
        /// The version of the snapshot's form: 1.
        public internal(set) var version = 1
        /// The number of the snapshot in its console. A snapshot whose number is missing was dropped, because this
        /// reader had not read the previous one.
        public internal(set) var number: Int
        /// The number of the process.
        public internal(set) var process: Int
        /// The name of the program.
        public internal(set) var program: String
        /// The loops, in the order in which they were added, without loops that have ended.
        public internal(set) var loops: [Loop]
        /// The cycles among tasks of the loops: each task waits for the next one, the last for the first. None of them
        /// can continue, unless a wait among them is cancelled.
        public internal(set) var cycles: [[WaitingTask]]
    }

    /// One loop in a snapshot.
    public struct Loop: Sendable, Hashable, Codable {
        /// The name under which the loop was added.
        public internal(set) var name: String
        /// The state of the loop: asleep, busy, blocked or silent.
        public internal(set) var state: LoopState
        /// The time since the loop's last answer; `nil` if there was none. Values that only the loop's thread knows are
        /// as old: ``lateness``, ``lines``, ``due``, ``connections`` and ``tasks``.
        public internal(set) var age: Double?
        /// The modes of the runs under way at that time, the innermost last.
        public internal(set) var modes: [String] = []
        /// The number of passes each second; 0 while the loop does not answer. The console's own questions are among
        /// them.
        public internal(set) var passes = 0.0
        /// The number of sleeps each second; 0 while the loop does not answer.
        public internal(set) var sleeps = 0.0
        /// The number of calls of timers each second; 0 while the loop does not answer.
        public internal(set) var fires = 0.0
        /// The number of jobs of tasks each second; 0 while the loop does not answer.
        public internal(set) var jobs = 0.0
        /// The share of the time since the last snapshot that the loop slept; `nil` if the loop has no recorder.
        public internal(set) var asleep: Double?
        /// The share of the time since the last snapshot that the loop's thread computed.
        public internal(set) var computing: Double?
        /// The lateness of the deadlines that the loop served between its last two answers.
        public internal(set) var lateness = Lateness()
        /// The handler that is being called, if the loop's run waits for its return.
        public internal(set) var call: Call?
        /// The handlers called since the last snapshot, by the time they took, the longest first; 100 at most.
        public internal(set) var handlers: [Handler] = []
        /// The items of the loop by the lines of the program that made them: growing lines first, then lines with most
        /// items; 100 at most.
        public internal(set) var lines: [Line] = []
        /// The items that are due next, in order; 100 at most.
        public internal(set) var due: [Due] = []
        /// The connections, by the bytes they moved, the most first; 100 at most.
        public internal(set) var connections: [Connection] = []
        /// The tasks; 1,000 at most.
        public internal(set) var tasks: [Task] = []
        /// The numbers of all items, connections and tasks.
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
        /// The loop does not answer, and calls no handler known to the console: its thread does not run it, or the call
        /// began before the loop was recorded.
        case silent
    }

    /// The lateness with which deadlines were served.
    public struct Lateness: Sendable, Hashable, Codable {
        /// The number of deadlines.
        public internal(set) var count = 0
        /// The lateness that half of them did not exceed.
        public internal(set) var half = 0.0
        /// The lateness that 99 % of them did not exceed.
        public internal(set) var most = 0.0
        /// The lateness that none of them exceeded.
        public internal(set) var all = 0.0
    }

    /// A call under way.
    public struct Call: Sendable, Hashable, Codable {
        /// The kind of the handler, for example `timer`.
        public internal(set) var kind: String
        /// The handler's name.
        public internal(set) var name: String?
        /// The line of the program that made the handler; of a task, the line that started it.
        public internal(set) var origin: String
        /// The duration of the call so far.
        public internal(set) var time: Double
        /// A Boolean value that indicates whether the loop's thread waits, for example for a lock or a file, and does
        /// not compute.
        public internal(set) var isWaiting: Bool
    }

    /// The calls of one handler since the last snapshot.
    public struct Handler: Sendable, Hashable, Codable {
        /// The kind of the handler, for example `timer`.
        public internal(set) var kind: String
        /// The handler's name.
        public internal(set) var name: String?
        /// The line of the program that made the handler; of a task, the line that started it.
        public internal(set) var origin: String
        /// The number of calls that began.
        public internal(set) var calls: Int
        /// The share of the time that the calls took, without the calls and sleeps nested in them.
        public internal(set) var share: Double
        /// The duration of the longest call, with the calls nested in it; of a call under way, until now.
        public internal(set) var longest: Double
    }

    /// The items of one kind that a line of the program has made.
    public struct Line: Sendable, Hashable, Codable {
        /// The kind of the items, for example `timer`.
        public internal(set) var kind: String
        /// The name of the items, if all have the same.
        public internal(set) var name: String?
        /// The line of the program.
        public internal(set) var origin: String
        /// The number of the items in the loop.
        public internal(set) var count: Int
        /// The growth of the items, if their number has risen several times and never fallen: they may be leaking.
        public internal(set) var growth: Growth?
    }

    /// The growth of a number of items.
    public struct Growth: Sendable, Hashable, Codable {
        /// The number of items added since the growth began.
        public internal(set) var items: Int
        /// The time since the growth began.
        public internal(set) var time: Double
    }

    /// An item with a deadline.
    public struct Due: Sendable, Hashable, Codable {
        /// The kind of the item, for example `timer`.
        public internal(set) var kind: String
        /// The item's name.
        public internal(set) var name: String?
        /// The line of the program that made the item.
        public internal(set) var origin: String
        /// The time until the deadline, from the loop's last answer, or from now if it does not answer; negative if it
        /// is late.
        public internal(set) var time: Double
        /// Further details in words, for example `every 0.5 seconds`.
        public internal(set) var detail: String?
    }

    /// A stream socket that a loop watches.
    public struct Connection: Sendable, Hashable, Codable {
        /// The descriptor.
        public internal(set) var descriptor: Int32
        /// The name of the source that watches it.
        public internal(set) var name: String?
        /// The line of the program that made the source.
        public internal(set) var origin: String
        /// The address of the peer, if it has one.
        public internal(set) var peer: String?
        /// The number of bytes received; `nil` if the socket is not TCP, where the kernel counts them.
        public internal(set) var received: Int?
        /// The number of bytes that the peer has acknowledged; `nil` if the socket is not TCP.
        public internal(set) var sent: Int?
        /// The number of received bytes that the program has not read yet.
        public internal(set) var unread: Int
        /// The number of bytes in the kernel that the peer has not acknowledged.
        public internal(set) var unsent: Int
    }

    /// A task of a loop.
    public struct Task: Sendable, Hashable, Codable {
        /// The task's number, unique in the process.
        public internal(set) var number: Int
        /// The task's name.
        public internal(set) var name: String?
        /// The line of the program that started the task.
        public internal(set) var origin: String
        /// The task's activity, for example `sleeps until 2.500000000`; `nil` if the task waits for something unknown
        /// to the loop, such as a continuation or an actor elsewhere.
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
        /// The line of the program that started the task.
        public internal(set) var origin: String
    }

    /// The numbers of a loop's items, connections and tasks.
    public struct Counts: Sendable, Hashable, Codable {
        /// The number of scheduled items, including tasks and waiting blocks.
        public internal(set) var items = 0
        /// The number of connections.
        public internal(set) var connections = 0
        /// The number of tasks.
        public internal(set) var tasks = 0
    }
}

extension Console.Snapshot {
    /// Reads a snapshot from a line of JSON, with or without the end of the line.
    ///
    /// - Throws: `DecodingError` if the line is no snapshot, or one of another version.
    public init(json line: [UInt8]) throws {
        self = try JSONDecoder().decode(Self.self, from: Data(line))
        guard version == 1 else {
            throw DecodingError.dataCorrupted(
                .init(codingPath: [], debugDescription: "a snapshot of version \(version); this program knows 1"))
        }
    }

    /// The snapshot as a line of JSON, with its end.
    public var json: [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        do { return try Array(encoder.encode(self)) + [UInt8(ascii: "\n")] } catch {
            fatalError("a snapshot has finite numbers, texts and lists: \(error)")
        }
    }
}
