/// Chooses what is not determined on a loop's thread; a loop has one in a simulation that is explored.
package protocol CallSchedule: AnyObject {
    /// A task of the loop is about to be started.
    ///
    /// - Returns: what is called when it has ended.
    func taskBegins(named name: String?, at origin: RunLoop.Origin) -> () -> Void

    /// A job waits for its turn.
    func jobCame(_ job: UnownedJob)

    /// Which of the jobs that wait, at least one, is run next; `nil` if first the loop has to take in what was posted.
    func nextJob(of jobs: [UnownedJob]) -> Int?

    /// A handler or a job has returned; other threads may have their turn.
    func callEnded()

    /// The block that runs jobs is about to return, and has done nothing since the last one.
    func turnEnds()
}
