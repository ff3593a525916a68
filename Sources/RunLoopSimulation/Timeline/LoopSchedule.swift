internal import RunLoopCore

/// The part of an explored simulation's schedule that concerns one loop.
final class LoopSchedule: CallSchedule {
    private unowned let timeline: Timeline
    private let schedule: Schedule
    private let thread: Timeline.Thread
    /// Whether the call that ends next has done nothing since the last one ended.
    private var isOver = false
    /// The calls that are under way, the innermost last.
    private var calls: [Schedule.Call] = []
    /// The call that has ended last.
    private(set) var lastCall: Schedule.Call?

    init(_ schedule: Schedule, of thread: Timeline.Thread, on timeline: Timeline) {
        self.schedule = schedule
        self.thread = thread
        self.timeline = timeline
    }

    func taskBegins(named name: String?, at origin: RunLoop.Origin) -> () -> Void {
        let number = schedule.taskBegins(named: name, at: origin, on: thread.number)
        return { [schedule] in schedule.taskEnded(number) }
    }

    func jobCame(_ job: UnownedJob) {
        schedule.jobCame(job, from: thread.number, to: thread.number)
    }

    func nextJob(of jobs: [UnownedJob]) -> Int? {
        guard let index = schedule.nextJob(of: jobs, on: thread.number) else { return nil }
        if timeline.isTraced {
            let departure = schedule.lastDeparture.map { " ← instead of \($0)" }
            timeline.note(schedule.lastStep.step + (departure ?? ""), ofTask: schedule.lastStep.task, on: thread)
        }
        return index
    }

    func turnEnds() {
        isOver = true
    }

    func callBegins(_ kind: RunLoop.ItemKind, named name: String?, at origin: RunLoop.Origin) {
        // The name of a job has its number in the process, which is another one each time.
        calls.append(Schedule.Call(name: kind == .executor ? nil : name, origin: origin))
    }

    func callEnded() {
        lastCall = calls.popLast()
        guard !isOver else { return isOver = false }
        let owner = (number: thread.number, name: thread.name)
        timeline.startOccasions { schedule, occasion in
            let happens = schedule.mayHappen(occasion.what, atMost: occasion.left, after: lastCall, on: owner)
            return happens ? occasion.what : nil
        }
        schedule.callEnded(lastCall, on: owner)
        timeline.giveWay(thread)
    }
}

/// Something that may happen at any moment.
struct Occasion: Sendable {
    let what: String
    /// The number of times that it may still happen.
    var left: Int
    let action: @Sendable () -> Void
}

extension Timeline {
    /// The thread whose handler or step asks for a choice; `nil` in the world's turn.
    var asker: (number: Int, name: String)? {
        guard let driver = RunLoop.installed?.virtualDriver, driver.timeline === self else { return nil }
        return state.withLock { $0.isActing ? nil : (driver.thread.number, driver.thread.name) }
    }

    /// Starts the chosen occasions, in the order in which they were registered.
    ///
    /// - Parameter choose: the words for an occasion, if it is to happen.
    /// - Returns: whether any was chosen.
    @discardableResult
    func startOccasions(_ choose: (Schedule, Occasion) -> String?) -> Bool {
        guard let schedule else { return false }
        var isAnyChosen = false
        for index in occasions.withLock({ $0.indices }) {
            let occasion = occasions.withLock { $0[index] }
            guard occasion.left > 0, let words = choose(schedule, occasion) else { continue }
            isAnyChosen = true
            occasions.withLock { $0[index].left -= 1 }
            // In the world's turn, because an occasion may end the thread that chose it.
            let test = state.withLock { _ in main.lane }
            _ = self.schedule(at: now, "what may happen", on: test) { [unowned self] in
                note(words, of: test)
                occasion.action()
            }
        }
        return isAnyChosen
    }
}
