internal import RunLoopKit
internal import Synchronization

/// Records the events on the threads of a performance, until it is over.
final class Recorder: Sendable {
    private let times: Testbed.Times
    private let main: DeliveryQueue
    private let namesThreads: Bool
    private let onEvent: @Sendable (ScenarioEvent) -> Void
    private let isOver = Mutex(false)

    /// - Parameter main: the queue of the main loop.
    init(
        _ times: Testbed.Times, main: DeliveryQueue, namesThreads: Bool,
        _ onEvent: @escaping @Sendable (ScenarioEvent) -> Void
    ) {
        self.times = times
        self.main = main
        self.namesThreads = namesThreads
        self.onEvent = onEvent
    }

    /// Records an event on the main loop's thread.
    func note(_ kind: ScenarioEvent.Kind) {
        write(kind, thread: "main")
    }

    /// Records an event on any thread: a background target is deallocated on the thread that releases it last.
    func noteHere(_ kind: ScenarioEvent.Kind) {
        write(kind, thread: DeliveryQueue.current == main ? "main" : RunLoop.current.name ?? "background")
    }

    /// Ends the recording; later events, during the teardown, are not written.
    func close() {
        note(.end)
        isOver.withLock { $0 = true }
    }

    // Under the lock, so that events are in the order of their times.
    private func write(_ kind: ScenarioEvent.Kind, thread: String) {
        isOver.withLock { isOver in
            guard !isOver else { return }
            onEvent(ScenarioEvent(t: times.now, kind, thread: namesThreads ? thread : nil))
        }
    }
}
