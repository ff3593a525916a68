/// Runs jobs of tasks on a loop's thread. `Loop` is the type that runs them.
protocol JobExecutor<Loop>: AnyObject, Sendable {
    associatedtype Loop

    /// Takes a job that came by way of the mailbox.
    func take(_ job: UnownedJob, by way: JobWay, in loop: Loop)

    /// Runs the jobs that wait now, in any mode, because the loop has ended. Jobs that they enqueue wait.
    func runWaiting(in loop: Loop)

    /// Takes the waiting jobs, which will not be run here.
    func takeWaiting() -> [(job: UnownedJob, way: JobWay)]

    /// Refuses a job after ``end()``.
    func refuse(_ job: UnownedJob, by way: JobWay)

    /// Indicates whether no job waits. On the loop's thread.
    var isIdle: Bool { get }

    /// Takes no job from now on.
    func end()
}

/// The executor by which a job came to a loop.
enum JobWay {
    /// The executor of actors.
    case serial
    /// The executor of tasks.
    case task
    /// The executor of the loop's own tasks.
    case own
    /// Swift's default executor, which the loop replaces.
    case standIn
    /// The main actor's executor, which the loop replaces.
    case mainActor
    /// The executor of actors, for a task that prefers one of the others.
    case serialOfTask, serialOfOwn

    /// The way of the same task to an actor.
    var toActor: JobWay {
        switch self {
        case .serial, .standIn, .mainActor: .serial
        case .task, .serialOfTask: .serialOfTask
        case .own, .serialOfOwn: .serialOfOwn
        }
    }
}
