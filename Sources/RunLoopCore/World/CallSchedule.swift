/// Chooses among the possible orders on a loop's thread. A loop has a schedule in an explored simulation.
@_spi(Ports) public protocol CallSchedule: AnyObject {
    /// Notes that a task of the loop is about to be started.
    ///
    /// - Returns: a closure to call when the task has ended.
    func taskBegins(named name: String?, at origin: RunLoop.Origin) -> () -> Void

    /// Notes a job that waits for its turn.
    func jobCame(_ job: UnownedJob)

    /// Returns the index of the next job to run among `jobs`, which are not empty; `nil` if the loop first has to take
    /// its mail.
    func nextJob(of jobs: [UnownedJob]) -> Int?

    /// Notes that a handler or a job is about to be called.
    func callBegins(_ kind: RunLoop.ItemKind, named name: String?, at origin: RunLoop.Origin)

    /// Notes that a handler or a job has returned; other threads may have their turn.
    func callEnded()

    /// Notes that the block that runs jobs is about to return, and has done nothing since the last job.
    func turnEnds()
}
