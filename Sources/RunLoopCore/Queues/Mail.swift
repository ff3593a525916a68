/// Requests, blocks and jobs of other threads, until the loop looks.
struct Mail<Loop: AnyObject>: ~Copyable {
    /// A request that is carried out when the loop next looks, in any mode.
    enum Request {
        case urgent(@Sendable (Loop) -> Void)
        /// For the run with that number; 0 for the next run.
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
