import RunLoopKit
import Synchronization

/// Takes `steps` steps; other tasks have their turn between them.
func work(_ steps: Int) async {
    for _ in 0..<steps { await Task.yield() }
}

/// Tasks of one loop that wait until others wake them, in the order of their arrival.
final class Waiters: @unchecked Sendable {
    // Unchecked: used only on the loop's thread, the cancellation of tasks included.
    private var waiting: [(number: Int, continuation: UnsafeContinuation<Void, any Error>)] = []
    private var count = 0

    /// - Throws: `CancellationError`.
    func wait() async throws {
        count += 1
        let number = count
        try await withTaskCancellationHandler {
            try await withUnsafeThrowingContinuation { (continuation: UnsafeContinuation<Void, any Error>) in
                if Task.isCancelled {
                    continuation.resume(throwing: CancellationError())
                } else {
                    waiting.append((number, continuation))
                }
            }
        } onCancel: {
            guard let place = waiting.firstIndex(where: { $0.number == number }) else { return }
            waiting.remove(at: place).continuation.resume(throwing: CancellationError())
        }
    }

    /// - Returns: `true` if a task waited.
    @discardableResult
    func wakeFirst() -> Bool {
        guard !waiting.isEmpty else { return false }
        waiting.removeFirst().continuation.resume()
        return true
    }

    func wakeAll() {
        while wakeFirst() {}
    }
}

/// A lock that one task of a loop holds at a time; on release it passes to the task that has waited longest.
final class TaskLock {
    private var isTaken = false
    private let waiters = Waiters()

    func lock() async throws {
        if isTaken { try await waiters.wait() } else { isTaken = true }
    }

    func unlock() {
        if !waiters.wakeFirst() { isTaken = false }
    }
}

/// A value shared by several threads of a simulation. Only one of the threads runs at a time, until its callback ends:
/// a read followed by a write is one change.
final class Shared<Value: Sendable>: Sendable {
    private let state: Mutex<Value>

    init(_ value: Value) {
        state = Mutex(value)
    }

    var value: Value {
        get { state.withLock { $0 } }
        set { state.withLock { $0 = newValue } }
    }
}

/// Makes a thread that runs the blocks posted to it.
func makeThread(_ name: String) -> RunLoop.Remote {
    LoopThread(name: name).remote
}
