@_spi(Ports) internal import RunLoopCore

/// The part of an explored simulation's schedule that concerns one loop.
final class LoopSchedule: CallSchedule {
    private unowned let timeline: Timeline
    private let schedule: Schedule
    private let thread: Timeline.Thread
    /// `true` if the call that ends next has done nothing since the previous one ended.
    private var isOver = false
    /// The calls that are under way, the innermost last.
    private var calls: [Schedule.Call] = []
    /// The call that has most recently ended.
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
        // The name of a job contains its number in the process, which differs each time.
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
