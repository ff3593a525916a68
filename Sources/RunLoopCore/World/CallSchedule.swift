/// Chooses among the possible orders on a loop's thread; a loop has one in a simulation that is explored.
package protocol CallSchedule: AnyObject {
    /// A task of the loop is about to be started.
    ///
    /// - Returns: a closure to call when the task has ended.
    func taskBegins(named name: String?, at origin: RunLoop.Origin) -> () -> Void

    /// A job waits for its turn.
    func jobCame(_ job: UnownedJob)

    /// The index of the next job to run among those that wait, at least one; `nil` if the loop first has to take its
    /// mail.
    func nextJob(of jobs: [UnownedJob]) -> Int?

    /// A handler or a job is about to be called.
    func callBegins(_ kind: RunLoop.ItemKind, named name: String?, at origin: RunLoop.Origin)

    /// A handler or a job has returned; other threads may have their turn.
    func callEnded()

    /// The block that runs jobs is about to return, and has done nothing since the last one.
    func turnEnds()
}
