package import RunLoopCore

/// Chooses wherever more than one thing may legally happen next, in a simulation that is explored.
///
/// Only the thread whose turn it is asks it.
package protocol Choices: AnyObject, Sendable {
    /// Which of the threads that have something to do goes first.
    ///
    /// - Parameters:
    ///   - ready: their numbers, in the order in which they were started; at least one.
    ///   - name: the name of a thread.
    func nextThread(of ready: [Int], _ name: (Int) -> String) -> Int

    /// A thread is about to start a task of its loop.
    ///
    /// - Returns: a number for ``taskEnded(_:)``.
    func taskBegins(named name: String?, at origin: RunLoop.Origin, on thread: Int) -> Int

    func taskEnded(_ number: Int)

    /// A job waits for its turn on a thread, or is on its way there.
    ///
    /// - Parameter thread: the calling thread.
    func jobCame(_ job: UnownedJob, from thread: Int)

    /// Which of the jobs that wait on a thread, at least one, is run next.
    func nextJob(of jobs: [UnownedJob], on thread: Int) -> Int

    /// The job that was chosen last on a thread, if there is one, has come to rest.
    func callEnded(on thread: Int)

    /// Which of so many possibilities comes true; the first one is what usually happens.
    func choose(_ what: String, of count: Int) -> Int

    /// What was chosen last of tasks or possibilities: whose that is, and what it does.
    var lastStep: (lane: String, words: String) { get }
}

/// What chooses for one loop of an explored simulation.
final class LoopChoices: CallSchedule {
    private unowned let timeline: Timeline
    private let choices: any Choices
    private let thread: Int

    init(_ choices: any Choices, of thread: Int, on timeline: Timeline) {
        self.choices = choices
        self.thread = thread
        self.timeline = timeline
    }

    func taskBegins(named name: String?, at origin: RunLoop.Origin) -> () -> Void {
        let number = choices.taskBegins(named: name, at: origin, on: thread)
        return { [choices] in choices.taskEnded(number) }
    }

    func jobCame(_ job: UnownedJob) {
        choices.jobCame(job, from: thread)
    }

    func nextJob(of jobs: [UnownedJob]) -> Int {
        let index = choices.nextJob(of: jobs, on: thread)
        if timeline.isTraced { timeline.note(choices.lastStep.words, of: choices.lastStep.lane) }
        return index
    }

    func callEnded() {
        choices.callEnded(on: thread)
        timeline.occasionsCome()
        timeline.giveWay(thread)
    }
}

/// Something that may happen at any moment.
struct Occasion: Sendable {
    let what: String
    /// How often it may still happen.
    var left: Int
    let action: @Sendable () -> Void
}

extension Timeline {
    /// Has happen what is chosen of what may, when the calling thread gives way.
    func occasionsCome() {
        guard let choices else { return }
        for index in occasions.withLock({ $0.indices }) {
            let occasion = occasions.withLock { $0[index] }
            guard occasion.left > 0, choices.choose(occasion.what, of: 2) == 1 else { continue }
            occasions.withLock { $0[index].left -= 1 }
            // In the world's turn: what happens may end the thread that chose it.
            let test = state.withLock { $0.lane(of: 0).name }
            _ = schedule(at: now, "what may happen", on: test) { [unowned self] in
                note(occasion.what, of: test)
                occasion.action()
            }
        }
    }
}
