/// Runs jobs of tasks on a loop's thread. `Loop` is the type that runs them.
protocol JobExecutor<Loop>: AnyObject, Sendable {
    associatedtype Loop

    /// Takes a job that came by way of the mailbox.
    func take(_ job: UnownedJob, by way: JobWay, in loop: Loop)

    /// Runs the jobs that wait now, in any mode, because the loop has ended. Those that come of them wait.
    func runWaiting(in loop: Loop)

    /// Takes the jobs that wait now, which will not be run here.
    func takeWaiting() -> [(job: UnownedJob, way: JobWay)]

    /// Refuses a job when no job is taken any more.
    func refuse(_ job: UnownedJob, by way: JobWay)

    /// Whether no job waits. On the loop's thread.
    var isIdle: Bool { get }

    /// No job is taken any more.
    func end()
}

/// By which of its executors a job came to a loop.
enum JobWay {
    /// That of actors.
    case serial
    /// That of tasks.
    case task
    /// That of the loop's own tasks.
    case own
    /// Swift's default executor, in whose place the loop is.
    case standIn
    /// The main actor's, in whose place the loop is.
    case mainActor
    /// That of actors, and the task prefers one of the others.
    case serialOfTask, serialOfOwn

    /// The same task, on its way to an actor.
    var toActor: JobWay {
        switch self {
        case .serial, .standIn, .mainActor: .serial
        case .task, .serialOfTask: .serialOfTask
        case .own, .serialOfOwn: .serialOfOwn
        }
    }
}
