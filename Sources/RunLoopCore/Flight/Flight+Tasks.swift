extension Flight {
    /// A task, and its polls: the parts of it that ran until it waited.
    public struct TaskUsage: Sendable, Hashable {
        /// Its number, which no other task of the process has.
        public let number: UInt64
        /// Its name, and where it was started. For a task that is no loop's, the executor, without a name.
        public let handler: Handler?
        /// How often it was woken. The number of polls differs while it waits for its turn, and where events are lost.
        public let wakes: Int
        /// How often it was polled.
        public let polls: Int
        /// How long its polls took together, without the calls and sleeps that were nested in them.
        public let time: Duration
        /// Its longest poll, with whatever was nested in it.
        public let longest: Duration
        /// The longest time from a wake to the poll that followed.
        public let longestWait: Duration

        /// For example `task "poller" (Daemon/main.swift:12), number 3`.
        public var name: String { "\(handler.map { "\($0)" } ?? "a task without a name"), number \(number)" }
    }

    /// The tasks, those that were polled most first. A job of Swift's runtime that is none of a task has no number, and is
    /// not among them. O(events).
    public var tasks: [TaskUsage] {
        struct Sum {
            var handler: Handler?
            var wakes = 0
            var polls = 0
            var time = Duration.zero
            var longest = Duration.zero
            var longestWait = Duration.zero
        }
        var sums: [UInt64: Sum] = [:]
        for entry in entries {
            guard case .caused(let handler, let number) = entry.event, handler?.kind.isOfTasks == true, number != 0
            else { continue }
            sums[number, default: Sum(handler: handler)].wakes += 1
        }
        for call in calls {
            guard let number = call.task, number != 0 else { continue }
            var sum = sums[number] ?? Sum()
            // A task is woken for the first time before its name is known.
            sum.handler = call.handler
            sum.polls += 1
            if let woken = call.cause?.time { sum.longestWait = max(sum.longestWait, call.begin - woken) }
            if let duration = call.duration {
                sum.time += duration - call.nested
                sum.longest = max(sum.longest, duration)
            }
            sums[number] = sum
        }
        return sums.map { number, sum in
            TaskUsage(
                number: number, handler: sum.handler, wakes: sum.wakes, polls: sum.polls, time: sum.time,
                longest: sum.longest, longestWait: sum.longestWait)
        }.ordered { ($1.polls, $0.number) < ($0.polls, $1.number) }
    }
}
