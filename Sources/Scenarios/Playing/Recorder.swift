internal import RunLoopKit
internal import Synchronization

/// Writes down what happens on the threads of a performance, until it is over.
final class Recorder: Sendable {
    private let times: Stage.Times
    private let namesThreads: Bool
    private let onEvent: @Sendable (ScenarioEvent) -> Void
    private let isOver = Mutex(false)

    init(_ times: Stage.Times, namesThreads: Bool, _ onEvent: @escaping @Sendable (ScenarioEvent) -> Void) {
        self.times = times
        self.namesThreads = namesThreads
        self.onEvent = onEvent
    }

    /// On the main loop's thread.
    func note(_ kind: ScenarioEvent.Kind) {
        write(kind, thread: "main")
    }

    /// On the thread that `queue` has chosen.
    func note(_ kind: ScenarioEvent.Kind, on queue: Scenario.Queue) {
        write(kind, thread: queue == .main ? "main" : RunLoop.current.name ?? "background")
    }

    /// The end; what happens afterwards, while all is taken down, is not written.
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
