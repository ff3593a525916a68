internal import RunLoopCore

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

    func jobCame(_ job: UnownedJob) {
        choices.jobCame(job, from: thread)
    }

    func nextJob(of jobs: [UnownedJob]) -> Int { choices.nextJob(of: jobs, on: thread) }

    func callEnded() {
        choices.callEnded(on: thread)
        timeline.giveWay(thread)
    }
}

extension Simulation {
    /// One of several possibilities.
    ///
    /// In a simulation that is explored each of them is tried: which message is lost, when a user drags, how many clients
    /// there are. Elsewhere it is the first one, which should therefore be what usually happens.
    ///
    /// ```swift
    /// let pause = simulation.choice("the pause before the retry", of: [.seconds(1), .zero, .seconds(60)])
    /// ```
    ///
    /// On a thread of the simulation; O(1).
    ///
    /// - Parameters:
    ///   - what: what is chosen, for reports.
    ///   - options: the possibilities; at least one.
    public func choice<Option>(_ what: String, of options: [Option]) -> Option {
        require(!options.isEmpty, "a choice needs something to choose from; \(quoted(what)) has nothing")
        return options[timeline.choices?.choose(what, of: options.count) ?? 0]
    }

    /// Whether something happens that usually does not, such as a fault. Elsewhere than in a simulation that is explored
    /// it never does. See ``choice(_:of:)``.
    public func mayHappen(_ what: String) -> Bool { choice(what, of: [false, true]) }
}
