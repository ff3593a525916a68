import RunLoopKit

/// Writes the changes of all clients of a loop to the log together, at the end of the pass. On the loop's thread.
final class ChangeWriter {
    let queue: ChangeQueue
    /// Called when the changes noted so far are written, or cannot be written for now.
    var writtenHandler: () -> Void = {}

    private unowned let loop: RunLoop
    private var isDue = false
    private let own: LoopBound<Own>

    private struct Own {
        weak var writer: ChangeWriter?
    }

    init(_ queue: ChangeQueue, on loop: RunLoop) {
        (self.queue, self.loop) = (queue, loop)
        own = LoopBound(Own(), loop: loop)
        own.value.writer = self
    }

    func note(_ change: Store.Change) {
        queue.note(change)
        writeSoon()
    }

    /// Writes all changes noted so far, on any loop.
    func writeSoon() {
        guard !isDue else { return }
        isDue = true
        // After the descriptor events of the pass.
        loop.perform(inModes: .common) { [self] in write() }
    }

    private func write() {
        let isWritten = queue.write(now: loop.now) { [own] in
            own.remote.perform(inModes: .common) { _ in own.value.writer?.write() }
        }
        guard isWritten else { return }
        isDue = false
        writtenHandler()
    }
}
