extension Flight {
    /// A task, and its polls: the parts of it that ran until it waited.
    public struct TaskUsage: Sendable, Hashable {
        /// The task's number, unique in the process.
        public let number: UInt64
        /// The task's name, and the place where it was started. For a task that belongs to no loop, the executor,
        /// without a name.
        public let handler: Handler?
        /// The number of wakes. It differs from the number of polls while the task waits for its turn, and where events
        /// are lost.
        public let wakes: Int
        /// The number of polls.
        public let polls: Int
        /// The time of the polls together, without the calls and sleeps nested in them.
        public let time: Duration
        /// The task's longest poll, with the calls and sleeps nested in it.
        public let longest: Duration
        /// The longest time from a wake to the next poll.
        public let longestWait: Duration

        /// The handler and the number, for example `task "poller" (Daemon/main.swift:12), number 3`.
        public var name: String { "\(handler.map { "\($0)" } ?? "a task without a name"), number \(number)" }
    }

    /// The tasks, by their polls, the most polls first. A job of Swift's runtime that belongs to no task has no number,
    /// and is not among them. O(events).
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
