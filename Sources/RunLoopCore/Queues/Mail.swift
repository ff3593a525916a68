/// The requests, blocks and jobs of other threads, until the loop collects them.
struct Mail<Loop: AnyObject>: ~Copyable {
    /// A request that is carried out when the loop next collects its mail, in any mode.
    enum Request {
        case urgent(@Sendable (Loop) -> Void)
        /// Stops the run with the given number; 0 for the next run.
        case stop(activation: UInt64)
        case wakeUp
    }

    struct Job {
        let job: UnownedJob
        let way: JobWay
        let executor: any JobExecutor<Loop>
    }

    var blocks = FIFO<Block<Loop>>()
    var jobs = FIFO<Job>()
    var requests: [Request] = []

    var isEmpty: Bool { blocks.isEmpty && jobs.isEmpty && requests.isEmpty }
}
