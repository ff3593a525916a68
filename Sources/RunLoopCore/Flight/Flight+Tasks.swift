extension Flight {
    /// A task, and its polls: the parts of it that ran until it waited.
    public struct TaskUsage: Sendable, Hashable {
        /// The task's number, which no other task of the process has.
        public let number: UInt64
        /// The task's name, and where it was started. For a task that is no loop's, the executor, without a name.
        public let handler: Handler?
        /// How often it was woken. The number of polls differs while it waits for its turn, and where events are lost.
        public let wakes: Int
        /// How often it was polled.
        public let polls: Int
        /// How long its polls took together, without the calls and sleeps that were nested in them.
        public let time: Duration
        /// The task's longest poll, with whatever was nested in it.
        public let longest: Duration
        /// The longest time from a wake to the poll that followed.
        public let longestWait: Duration

        /// For example `task "poller" (Daemon/main.swift:12), number 3`.
        public var name: String { "\(handler.map { "\($0)" } ?? "a task without a name"), number \(number)" }
    }

    /// The tasks, those that were polled most first. A job of Swift's runtime that is none of a task has no number, and is
    /// not among them. O(events).
    public var tasks: [TaskUsage] {
        var wakes: [UInt64: (handler: Handler?, count: Int)] = [:]
        for entry in entries {
            guard case .caused(let handler, let number) = entry.event, handler?.kind.isOfTasks == true, number != 0
            else { continue }
            wakes[number, default: (handler, 0)].count += 1
        }
        let polls = Dictionary(grouping: calls.filter { $0.task ?? 0 != 0 }) { $0.task! }
        return Set(wakes.keys).union(polls.keys).map { number in
            let (wakes, polls) = (wakes[number], polls[number] ?? [])
            return TaskUsage(
                // A task is woken for the first time before its name is known.
                number: number, handler: polls.last?.handler ?? wakes?.handler, wakes: wakes?.count ?? 0,
                polls: polls.count, time: polls.ownTime, longest: polls.longest,
                longestWait: polls.reduce(.zero) { wait, poll in
                    poll.cause?.time.map { max(wait, poll.begin - $0) } ?? wait
                })
        }.ordered { ($1.polls, $0.number) < ($0.polls, $1.number) }
    }
}
