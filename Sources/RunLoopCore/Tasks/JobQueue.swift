extension RunLoop {
    /// The jobs of an executor, which wait for its modes. On its loop's thread.
    ///
    /// The loop holds the jobs in a block that waits for the same modes and runs them in order. While one of them is on
    /// the stack, there is no such block: a nested run runs none of its siblings, and does not stay awake for them.
    final class JobQueue: UntimedItem {
        typealias Entry = (job: UnownedJob, way: JobWay)

        let modes: Modes
        // Unchecked as in `Item`.
        @exclusivity(unchecked) private var jobs = FIFO<Entry>()
        /// Set if a block of the loop will run the jobs.
        @exclusivity(unchecked) private var isScheduled = false
        /// The job on the stack.
        @exclusivity(unchecked) private(set) var running: Entry?
        /// The executors on which jobs are run. Not counted: the executors keep the queue, and the loop keeps them.
        var executors: (serial: UnownedSerialExecutor, task: UnownedTaskExecutor, own: UnownedTaskExecutor)!

        init(modes: Modes, origin: Origin) {
            self.modes = modes
            super.init(origin: origin)
        }

        var isIdle: Bool { jobs.isEmpty }
        var waitingJobs: [UnownedJob] { (0..<jobs.count).map { jobs[$0].job } }

        func add(_ job: UnownedJob, by way: JobWay, in loop: RunLoop) {
            if loop.isWatched([.effects, .choices, .uses]) { tell(of: job, in: loop) }
            guard let running else {
                jobs.append((job, way))
                if !isScheduled { schedule(in: loop) }
                return
            }
            // A task may be on its way to an actor of this executor.
            jobs.append((job, way == .serial && running.job == job ? running.way.toActor : way))
        }

        @inline(never)
        private func tell(of job: UnownedJob, in loop: RunLoop) {
            loop.noticeUse()
            loop.schedule?.jobCame(job)
            if loop.isWatched(.effects) { loop.watchedCause(of: callee(of: job)) }
        }

        /// Returns the task of a job, with the place where it was started if it is a loop's.
        func callee(of job: UnownedJob) -> Callee {
            let number = UInt64(job.taskNumber ?? 0)
            guard let label = job.label else { return Callee(kind, job.task, origin, number: number) }
            return Callee(.task, label.name, label.origin, number: number)
        }

        private func schedule(in loop: RunLoop) {
            assert(running == nil && !jobs.isEmpty, "a turn is scheduled within a job, or for none")
            if home == nil && !loop.hasEnded {
                setMembership(Membership.none.joining(modes, common: loop.modeTable.common), in: loop)
            }
            isScheduled = true
            loop.blocks.append(Block(modes: modes, body: { [self] loop in runTurn(in: loop) }, origin: origin))
        }

        /// Runs the waiting jobs and jobs that they add, up to the limit of a turn.
        private func runTurn(in loop: RunLoop) {
            assert(isScheduled && running == nil, "a turn of jobs was not asked for, or is within a job")
            isScheduled = false
            var turn = Turn()
            while let entry = takeNext(in: loop) {
                run(entry, in: loop)
                if !jobs.isEmpty && turn.isOver(in: loop) { break }
            }
            if !jobs.isEmpty { schedule(in: loop) }
            if loop.isWatched(.choices) { tellScheduleOfEnd(in: loop) }
        }

        @inline(never)
        private func tellScheduleOfEnd(in loop: RunLoop) {
            loop.schedule?.turnEnds()
        }

        @inline(__always)
        private func takeNext(in loop: RunLoop) -> Entry? {
            if loop.isWatched(.choices) && !jobs.isEmpty && !moveChosenFirst(in: loop) { return nil }
            return jobs.popFirst()
        }

        /// - Returns: `false` if no job is to be run in this turn.
        @inline(never)
        private func moveChosenFirst(in loop: RunLoop) -> Bool {
            guard let schedule = loop.schedule else { return true }
            guard let place = schedule.nextJob(of: (0..<jobs.count).map { jobs[$0].job }) else { return false }
            assert(place >= 0 && place < jobs.count, "a schedule has chosen a job that does not wait")
            jobs.moveFirst(from: place)
            return true
        }

        /// Runs the jobs that wait now, in any mode, because the loop has ended.
        func runWaiting(in loop: RunLoop) {
            for _ in 0..<jobs.count {
                guard let entry = jobs.popFirst() else { return }
                run(entry, in: loop)
            }
        }

        func takeWaiting() -> [Entry] {
            var waiting: [Entry] = []
            while let entry = jobs.popFirst() { waiting.append(entry) }
            return waiting
        }

        // A job is run with exactly the executors by which it came: with others, the runtime enqueues it again at each
        // call of a function that is isolated differently. If all jobs of tasks were run with both executors, a sleep
        // would take 6 jobs instead of 1; if jobs of actors were run with one, 9 instead of 2 in a task that prefers
        // the loop.
        @inline(__always)
        private func run(_ entry: Entry, in loop: RunLoop) {
            assert(running == nil, "a job runs within another one of its executor")
            let outer = loop.runs.jobItem
            loop.runs.jobItem = UnownedReference(self)
            running = entry
            loop.dispatch(callee(of: entry.job)) {
                let (job, executors) = (entry.job, executors!)
                switch entry.way {
                case .serial: job.runSynchronously(on: executors.serial)
                case .task: job.runSynchronously(on: executors.task)
                case .own: job.runSynchronously(on: executors.own)
                case .standIn: job.runSynchronously(on: globalConcurrentExecutor.asUnownedTaskExecutor())
                case .mainActor: job.runSynchronously(on: MainActor.sharedUnownedExecutor)
                case .serialOfTask:
                    job.runSynchronously(isolatedTo: executors.serial, taskExecutor: executors.task)
                case .serialOfOwn:
                    job.runSynchronously(isolatedTo: executors.serial, taskExecutor: executors.own)
                }
            }
            assert(running.map { $0.job == entry.job } == true, "another job has ended")
            assert(
                loop.runs.jobItem?.address == UnownedReference(self).address, "the job of another executor has ended")
            running = nil
            loop.runs.jobItem = outer
            loop.statistics.jobs += 1
        }

        // MARK: Tasks that begin at once

        /// Calls `start`, which starts a task whose first part runs within it, as a job of this queue.
        func runAtOnce<Result>(_ callee: Callee, in loop: RunLoop, _ start: () -> Result) -> Result {
            let outer = (loop.runs.jobItem, running)
            loop.runs.jobItem = UnownedReference(self)
            running = nil
            let result = loop.dispatch(callee, start)
            (loop.runs.jobItem, running) = outer
            loop.statistics.jobs += 1
            // While a job runs, those that it adds wait for its turn to go on.
            if running == nil, !jobs.isEmpty, !isScheduled { schedule(in: loop) }
            return result
        }

        /// Notes the job of the task that ``runAtOnce(_:in:_:)`` has started.
        func began(_ job: UnownedJob, by way: JobWay) {
            assert(running == nil, "a task begins within another job of its executor")
            running = (job, way)
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

    /// The job that the loop runs; `nil` if it runs none. Belongs to the loop's thread.
    @_spi(Ports) public var runningJob: UnownedJob? {
        runs.jobItem.flatMap { UnownedReference<JobQueue>(address: $0.address).with { $0.running?.job } }
    }
}
