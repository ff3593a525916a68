import RunLoopKit

/// A thread for jobs that may wait for the disk, so that the loop never does. Jobs run one after another.
final class DiskThread {
    private let loop: RunLoop
    private let thread: LoopThread
    private var number = 0
    private var completions: [Int: (Outcome) -> Void] = [:]
    private var own: LoopBound<DiskThread>?

    typealias Outcome = Result<Int, DiskError>

    init(on loop: RunLoop) {
        self.loop = loop
        thread = LoopThread(name: "disk")
        own = LoopBound(self, loop: loop)
    }

    /// Runs a job on the thread, and then the completion on the loop, never from within this call.
    ///
    /// - Parameter job: the job, which returns a number of its choice.
    func perform(_ job: @escaping @Sendable () throws(DiskError) -> Int, then completion: @escaping (Outcome) -> Void) {
        guard let own else { return }
        number += 1
        completions[number] = completion
        thread.remote.perform { [number] _ in
            let outcome = Outcome { () throws(DiskError) in try job() }
            own.remote.perform { _ in own.value.deliver(number, outcome) }
        }
    }

    private func deliver(_ number: Int, _ outcome: Outcome) {
        completions.removeValue(forKey: number)?(outcome)
    }

    /// Waits until all jobs are done, whose completions are not called any more.
    func close() {
        own = nil
        completions = [:]
        thread.stop()
        thread.join()
    }
}
