import RunLoopKit
import RunLoopUnix

/// Carries out the effects of a member in order, the actions after the records before them, so that other members never
/// rely on a vote or an entry that a crash could take back. Used on the member's loop; another thread waits for the
/// disk.
final class Store {
    /// Called with each action.
    var actionHandler: (Action) -> Void = { _ in }
    /// Called when the disk has failed. No action happens after that.
    var errorHandler: (SystemError) -> Void = { _ in }

    private let journal: Journal
    private let thread: LoopThread
    private var own: LoopBound<Store>?
    private var pending: [Effects] = []
    private var isBusy = false

    init(_ journal: Journal, on loop: RunLoop) {
        self.journal = journal
        thread = LoopThread(name: "disk")
        own = LoopBound(self, loop: loop)
    }

    func carryOut(_ effects: Effects) {
        pending.append(effects)
        proceed()
    }

    /// Stores all pending records with one sync.
    private func proceed() {
        guard !isBusy, !pending.isEmpty, let own else { return }
        isBusy = true
        let (records, actions) = (pending.flatMap(\.records), pending.flatMap(\.actions))
        pending = []
        guard !records.isEmpty else { return perform(actions) }
        thread.remote.perform { [journal] _ in
            let outcome = Result { () throws(SystemError) in try journal.append(records) }
            own.remote.perform(inModes: .common) { _ in own.value.wrote(outcome, before: actions) }
        }
    }

    private func wrote(_ outcome: Result<Void, SystemError>, before actions: [Action]) {
        guard own != nil else { return }
        switch outcome {
        case .success: perform(actions)
        case .failure(let error): errorHandler(error)
        }
    }

    private func perform(_ actions: [Action]) {
        actions.forEach(actionHandler)
        isBusy = false
        proceed()
    }

    /// Waits until a write that has begun is done, without any actions after that.
    func close() {
        own = nil
        thread.stop()
        thread.join()
    }
}
