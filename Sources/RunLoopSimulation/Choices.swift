package import RunLoopCore

/// Chooses wherever more than one thing may legally happen next, in a simulation that is explored.
///
/// Only the thread whose turn it is asks it.
package protocol Choices: AnyObject, Sendable {
    /// Which of the threads that have something to do goes first.
    ///
    /// - Parameters:
    ///   - ready: their numbers, in the order in which they were started; at least one.
    ///   - usual: which of them usually does.
    ///   - name: the name of a thread.
    func nextThread(of ready: [Int], usual: Int, _ name: (Int) -> String) -> Int

    /// Which of the things happens first that the world does by itself at the same time.
    ///
    /// - Parameter lanes: what each of them belongs to, in their usual order; at least two.
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

    /// Which of the jobs that wait on a thread, at least one, is run next, usually the first one; `nil` if the thread has
    /// to take in before that what is on its way.
    func nextJob(of jobs: [UnownedJob], on thread: Int) -> Int?

    /// The job that was chosen last on a thread, if there is one, has come to rest.
    func callEnded(on thread: Int)

    /// Which of so many possibilities comes true; the first one is what usually happens.
    func choose(_ what: String, of count: Int) -> Int

    /// What comes of chance.
    ///
    /// - Parameters:
    ///   - usual: what usually does.
    ///   - range: what may.
    ///   - drawn: what the seed says.
    func draw(_ what: String, usual: Int, in range: ClosedRange<Int>, drawn: Int) -> Int

    /// Is told of everything that happens, in a line each; see ``picture(ofSimulation:seed:)``.
    var listener: (@Sendable (String) -> Void)? { get }

    /// Which task was chosen last, and which step of it that is.
    var lastStep: (task: String, step: String) { get }

    /// What would usually have been chosen last of tasks, threads or what the world does; `nil` if it was.
    var lastDeparture: String? { get }
}

/// Something that may happen at any moment.
struct Occasion: Sendable {
    let what: String
    /// How often it may still happen.
    var left: Int
    let action: @Sendable () -> Void
}
