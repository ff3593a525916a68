internal import RunLoopCore

/// The choices for one loop of an explored simulation.
final class LoopChoices: CallSchedule {
    private unowned let timeline: Timeline
    private let choices: any Choices
    private let thread: Timeline.Thread
    /// Whether the call that ends next has done nothing since the last one ended.
    private var isOver = false

    init(_ choices: any Choices, of thread: Timeline.Thread, on timeline: Timeline) {
        self.choices = choices
        self.thread = thread
        self.timeline = timeline
    }

    func taskBegins(named name: String?, at origin: RunLoop.Origin) -> () -> Void {
        let number = choices.taskBegins(named: name, at: origin, on: thread.number)
        return { [choices] in choices.taskEnded(number) }
    }

    func jobCame(_ job: UnownedJob) {
        choices.jobCame(job, from: thread.number, to: thread.number)
    }

    func nextJob(of jobs: [UnownedJob]) -> Int? {
        guard let index = choices.nextJob(of: jobs, on: thread.number) else { return nil }
        if timeline.isTraced {
            let departure = choices.lastDeparture.map { " ← instead of \($0)" }
            timeline.note(choices.lastStep.step + (departure ?? ""), of: choices.lastStep.task)
        }
        return index
    }

    func turnEnds() {
        isOver = true
    }

    func callEnded() {
        guard !isOver else { return isOver = false }
        choices.callEnded(on: thread.number)
        timeline.occasionsCome()
        timeline.giveWay(thread)
    }
}

extension Timeline {
    /// Starts the chosen occasions, when the calling thread gives way.
    func occasionsCome() {
        guard let choices else { return }
        for index in occasions.withLock({ $0.indices }) {
            let occasion = occasions.withLock { $0[index] }
            guard occasion.left > 0, choices.choose(occasion.what, of: 2) == 1 else { continue }
            occasions.withLock { $0[index].left -= 1 }
            // In the world's turn, because an occasion may end the thread that chose it.
            let test = state.withLock { _ in main.lane }
            _ = schedule(at: now, "what may happen", on: test) { [unowned self] in
                note(occasion.what, of: test)
                occasion.action()
            }
        }
    }
}
