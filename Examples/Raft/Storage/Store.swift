import RunLoopKit
import RunLoopUnix

/// Carries out the effects of a member in their order, the actions after the records before them: nobody may rely on a
/// vote or an entry that a crash could take back. On the member's loop; a thread beside it waits for the disk.
final class Store {
    /// Called with each action.
    var actionHandler: (Action) -> Void = { _ in }
    /// Called when the disk has failed. No action happens after that.
    var errorHandler: (any Error) -> Void = { _ in }

    private let journal: Journal
    private let loop: RunLoop
    private let thread: LoopThread
    private var pending: [Effects] = []
    private var isBusy = false

    init(_ journal: Journal, on loop: RunLoop) {
        (self.journal, self.loop) = (journal, loop)
        thread = LoopThread(name: "disk") { loop in
            // Nothing else keeps the loop of the thread from ending.
            loop.add(CustomSource(), forMode: .default)
        }
    }

    func carryOut(_ effects: Effects) {
        pending.append(effects)
        proceed()
    }

    /// Stores all pending records with one sync.
    private func proceed() {
        guard !isBusy, !pending.isEmpty else { return }
        isBusy = true
        let (records, actions) = (pending.flatMap(\.records), pending.flatMap(\.actions))
        pending = []
        guard !records.isEmpty else { return perform(actions) }
        loop.task(name: "write") { [thread, journal] in
            try await thread.remote.run { _ in try journal.append(records) }
        } then: { [self] result in
            if case .failure(let error) = result { return errorHandler(error) }
            perform(actions)
        }
    }

    private func perform(_ actions: [Action]) {
        actions.forEach(actionHandler)
        isBusy = false
        proceed()
    }

    /// Waits until a write that has begun is done. No action happens after that.
    func close() {
        isBusy = true
        thread.stop()
        thread.join()
    }
}
