extension RunLoop.Dump {
    /// The state of a task of the loop at the time of a dump.
    @_spi(Ports) public struct TaskState: Sendable, Hashable {
        /// The task's number, unique in the process.
        public let number: Int
        /// A description for reports, for example `sleeps until 2.500000000`; `nil` if the task waits for something
        /// unknown to the loop.
        public let activity: String?
        /// The numbers of the tasks that wait for this task's end, including other loops' tasks.
        public let awaiters: [Int]
    }

    /// The cycles of tasks of the loop that wait for each other: each for the next one, and the last for the first.
    /// None of them can continue, unless a wait among them is cancelled. O(n log n) in the number of items.
    public var cyclesOfWaiting: [[Item]] { Self.cyclesOfWaiting(among: items) }

    /// Returns the cycles among tasks of one loop or of several. A task is in at most one, the shortest that contains
    /// its first task, which has the smallest number. Any thread; O(n log n) in the number of items.
    @_spi(Ports) public static func cyclesOfWaiting(among items: [Item]) -> [[Item]] {
        var graph = WaitGraph()
        var byNumber: [Int: Item] = [:]
        for item in items {
            guard let task = item.task else { continue }
            byNumber[task.number] = item
            for awaiter in task.awaiters { graph.add(awaiter, awaits: task.number) }
        }
        return graph.cycles.map { $0.compactMap { byNumber[$0] } }
    }
}

extension RunLoop {
    /// Returns the states of the loop's tasks, by their items.
    func taskStates(of items: [UntimedItem]) -> [ObjectIdentifier: Dump.TaskState] {
        let tasks = items.compactMap { $0 as? TaskItem }
        guard !tasks.isEmpty else { return [:] }
        let awaiters = awaiters(of: tasks)
        var awaited: [UInt: [UnownedJob]] = [:]
        for item in tasks {
            guard let job = item.scope.task else { continue }
            for awaiter in awaiters[job.address, default: []] { awaited[awaiter.address, default: []].append(job) }
        }
        let ready = Set(items.compactMap { $0 as? JobQueue }.flatMap(\.waitingJobs).map(\.address))
        let running = runningJob?.address
        var states: [ObjectIdentifier: Dump.TaskState] = [:]
        for item in tasks {
            guard let job = item.scope.task, let number = job.taskNumber else { continue }
            var activity = item.scope.wait?.purpose ?? awaited[job.address].map(Self.wait)
            if running == job.address {
                activity = "runs"
            } else if ready.contains(job.address) {
                activity = "is ready"
            }
            states[ObjectIdentifier(item)] = Dump.TaskState(
                number: number, activity: activity,
                awaiters: awaiters[job.address, default: []].compactMap(\.taskNumber))
        }
        return states
    }

    /// Returns the tasks that wait for the end of each.
    private func awaiters(of tasks: [TaskItem]) -> [UInt: [UnownedJob]] {
        var awaiters: [UInt: [UnownedJob]] = [:]
        var scopes: Set<ObjectIdentifier> = []
        for item in tasks {
            if let job = item.scope.task { awaiters[job.address, default: []] += ValueAwaiters.of(job) }
            guard let scope = item.tasks, scopes.insert(ObjectIdentifier(scope)).inserted else { continue }
            for (member, waiting) in scope.awaiters { awaiters[member.address, default: []] += waiting }
        }
        return awaiters
    }

    private static func wait(for tasks: [UnownedJob]) -> String {
        let (first, others) = (tasks.prefix(3).map(\.task).joined(separator: ", "), tasks.count - 3)
        return "awaits " + first + (others > 0 ? " and \(others) others" : "")
    }
}
