extension RunLoop {
    /// The jobs of an executor, which wait for its modes. It belongs to its loop's thread.
    ///
    /// The loop keeps them as a block that waits for the same modes and runs them in order. While one of them is on the
    /// stack, there is no such block: a nested run runs none of its siblings, and does not stay awake for them.
    final class JobQueue: UntimedItem {
        /// A job, and the executor that it came by.
        struct Entry {
            enum Origin {
                case serial, task, own
                /// By that of actors, but its task prefers one of the others.
                case serialOfTask, serialOfOwn
            }

            let job: UnownedJob
            var origin: Origin
        }

        let modes: Modes
        // Unchecked as in `Item`.
        @exclusivity(unchecked) private var jobs = FIFO<Entry>()
        /// Whether a block of the loop will run them.
        @exclusivity(unchecked) private var isScheduled = false
        @exclusivity(unchecked) private var running: Entry?
        /// What jobs are told that they run on. Not counted: the executors keep the queue, and the loop them.
        var executors: Executors!

        struct Executors {
            let serial: UnownedSerialExecutor
            let task: UnownedTaskExecutor
            let own: UnownedTaskExecutor
        }

        init(modes: Modes, origin: Origin) {
            self.modes = modes
            super.init(origin: origin)
        }

        var isIdle: Bool { jobs.isEmpty }

        func add(_ entry: consuming Entry, in loop: RunLoop) {
            if let running {
                // A task on its way to an actor of this executor.
                if entry.origin == .serial && running.job == entry.job { entry.origin = running.origin.toActor }
                jobs.append(entry)
            } else {
                jobs.append(entry)
                if !isScheduled { schedule(in: loop) }
            }
        }

        private func schedule(in loop: RunLoop) {
            if home == nil && !loop.hasEnded {
                setMembership(Membership.none.joining(modes, common: loop.commonModes), in: loop)
            }
            isScheduled = true
            loop.blocks.append(Block(modes: modes, body: { [self] loop in runTurn(in: loop) }, origin: origin))
        }

        /// Runs what waits and what that brings, as long as a turn may last.
        private func runTurn(in loop: RunLoop) {
            isScheduled = false
            var turn = Turn()
            while let entry = jobs.popFirst() {
                run(entry, in: loop)
                if !jobs.isEmpty && turn.isOver(in: loop) { break }
            }
            if !jobs.isEmpty { schedule(in: loop) }
        }

        /// Runs all of them, in whatever mode, for the loop has ended.
        func runAll(in loop: RunLoop) {
            while let entry = jobs.popFirst() { run(entry, in: loop) }
        }

        // A job is told exactly where it is: whatever else it is told, the runtime enqueues it again at each call of a
        // function that is isolated differently. If all jobs of tasks were told of both executors, a sleep would take 6
        // jobs instead of 1; if jobs of actors were told of one, 9 instead of 2 in a task that prefers the loop.
        @inline(__always)
        private func run(_ entry: Entry, in loop: RunLoop) {
            running = entry
            loop.dispatch(kind, "\(entry.job.task)", origin) {
                let (job, executors) = (entry.job, executors!)
                switch entry.origin {
                case .serial: job.runSynchronously(on: executors.serial)
                case .task: job.runSynchronously(on: executors.task)
                case .own: job.runSynchronously(on: executors.own)
                case .serialOfTask:
                    job.runSynchronously(isolatedTo: executors.serial, taskExecutor: executors.task)
                case .serialOfOwn:
                    job.runSynchronously(isolatedTo: executors.serial, taskExecutor: executors.own)
                }
            }
            running = nil
            loop.statistics.jobs += 1
        }

        // MARK: As an item

        override var kind: ItemKind { .executor }
        override var hasHandler: Bool { true }
        override var keepsAlive: Bool { false }
        override func loopEnded() {}

        override var detail: String? {
            var parts = running.map { ["runs \($0.job.task)"] } ?? []
            if !jobs.isEmpty {
                let names = (0..<min(jobs.count, 8)).map { jobs[$0].job.task }
                parts.append("\(jobs.count) wait: " + names.joined(separator: ", ") + (jobs.count > 8 ? ", …" : ""))
            }
            return parts.isEmpty ? nil : parts.joined(separator: ", ")
        }
    }

    /// How long one thing may go on before timers and sources have their turn.
    ///
    /// Time is looked at after 1, 2, 4 … 64 calls, and then after every 64: slow calls are found out soon, and quick ones
    /// do not pay for the clock.
    struct Turn {
        private var count = 0
        private var step = 1
        private var untilLook = 1
        private var end: Instant?

        /// Asked after each call.
        @inline(__always)
        mutating func isOver(in loop: RunLoop) -> Bool {
            untilLook &-= 1
            return untilLook == 0 && look(in: loop)
        }

        private mutating func look(in loop: RunLoop) -> Bool {
            count += step
            step = min(count, 64)
            untilLook = step
            let now = loop.recentTime()
            let end = self.end ?? now + RunLoop.timePerTurn
            self.end = end
            return count >= RunLoop.blocksPerTurn || now >= end
        }
    }
}

extension RunLoop.JobQueue.Entry.Origin {
    /// The same task, isolated to an actor.
    fileprivate var toActor: Self {
        switch self {
        case .serial: .serial
        case .task, .serialOfTask: .serialOfTask
        case .own, .serialOfOwn: .serialOfOwn
        }
    }
}

extension UnownedJob {
    fileprivate static func == (left: UnownedJob, right: UnownedJob) -> Bool {
        // A job is a pointer to it.
        unsafeBitCast(left, to: UInt.self) == unsafeBitCast(right, to: UInt.self)
    }

    /// How reports name its task, for example `task 12`.
    var task: String { "task " + description.filter(\.isNumber) }
}
