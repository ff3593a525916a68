package import RunLoopCore

/// The choices of an explored simulation, wherever more than one thing may legally happen next.
///
/// Only the thread whose turn it is calls it.
package protocol Choices: AnyObject, Sendable {
    /// Chooses which of the runnable threads goes first.
    ///
    /// - Parameters:
    ///   - ready: the numbers and names of the threads, in the order in which they were started; at least one.
    ///   - usual: the thread that usually goes first.
    func nextThread(of ready: [(number: Int, name: String)], usual: Int) -> Int

    /// Chooses which of several world events with the same date happens first.
    ///
    /// - Parameter lanes: the lane of each event, in the usual order; at least two.
    func nextEvent(of lanes: [String]) -> Int

    /// A thread is about to start a task of its loop.
    ///
    /// - Returns: a number for ``taskEnded(_:)``.
    func taskBegins(named name: String?, at origin: RunLoop.Origin, on thread: Int) -> Int

    func taskEnded(_ number: Int)

    /// A job waits for its turn on a thread, or is on its way there.
    ///
    /// - Parameter sender: the calling thread.
    func jobCame(_ job: UnownedJob, from sender: Int, to thread: Int)

    /// Chooses the job that a thread runs next, of those that wait there, at least one; usually the first. `nil` if the
    /// thread must first take in the jobs that are on their way.
    func nextJob(of jobs: [UnownedJob], on thread: Int) -> Int?

    /// The job that was chosen last on a thread, if there is one, has come to rest.
    func callEnded(on thread: Int)

    /// Chooses one of so many possibilities; the first one is the usual one.
    func choose(_ what: String, of count: Int) -> Int

    /// Chooses the value of a random quantity.
    ///
    /// - Parameters:
    ///   - usual: the usual value.
    ///   - range: the possible values.
    ///   - drawn: the value that the seed gives.
    func draw(_ what: String, usual: Int, in range: ClosedRange<Int>, drawn: Int) -> Int

    /// Receives every event, as a line each; see ``picture(ofSimulation:seed:)``.
    var listener: (@Sendable (String) -> Void)? { get }

    /// The task that was chosen last, and its step.
    var lastStep: (task: String, step: String) { get }

    /// The usual choice in place of the last one, of tasks, threads or world events; `nil` if the last one was usual.
    var lastDeparture: String? { get }
}

/// Something that may happen at any moment.
struct Occasion: Sendable {
    let what: String
    /// The number of times that it may still happen.
    var left: Int
    let action: @Sendable () -> Void
}
