internal import CShims
internal import Glibc
@_spi(Ports) internal import RunLoopCore

/// A child as a target of signals from any thread, which refuses signals once another process may have the child's
/// number.
final class SignalTarget: Sendable {
    private let system: any SystemCalls
    private let processIdentifier: Int32
    private let hasGroup: Bool
    /// The process descriptor, which this object owns; -1 if there is none.
    let descriptor: Int32
    private let forkCount = rlk_fork_count()
    /// True while the child belongs to this process and has not been reaped.
    private let isReachable = Locked(true)

    init(_ system: any SystemCalls, processIdentifier: Int32, hasGroup: Bool, descriptor: Int32) {
        self.system = system
        self.processIdentifier = processIdentifier
        self.hasGroup = hasGroup
        self.descriptor = descriptor
    }

    deinit {
        if descriptor >= 0 { system.release(descriptor) }
    }

    /// - Returns: `false` if the child has been reaped.
    func send(_ signal: Signal) throws(SystemError) -> Bool {
        assert(processIdentifier > 0, "a signal would go to a whole group")
        let error: Int32? = isReachable.withLock { isReachable in
            guard isReachable else { return ESRCH }
            // The numbers of the child and of its group remain valid until the child is reaped; its descriptor reveals
            // whether other code has done that. A child that has left its group is signalled directly.
            if descriptor >= 0, system.send(0, toProcess: descriptor) != 0, errno == ESRCH { return ESRCH }
            if hasGroup, system.kill(-processIdentifier, signal.rawValue) == 0 { return nil }
            if hasGroup, errno != ESRCH { return errno }
            let status =
                descriptor >= 0
                ? system.send(signal.rawValue, toProcess: descriptor) : system.kill(processIdentifier, signal.rawValue)
            return status == 0 ? nil : errno
        }
        guard let error else { return true }
        if error == ESRCH { return false }
        throw SystemError("send \(signal) to process \(processIdentifier)", errno: error)
    }

    /// Reaps the ended child, which returns its number to the system.
    func reap() {
        isReachable.withLock { isReachable in
            guard isReachable else { return }
            isReachable = false
            _ = system.state(ofChild: processIdentifier, descriptor, reaps: true)
        }
    }

    /// Forgets a child that other code has reaped.
    func forget() {
        isReachable.withLock { $0 = false }
    }

    /// Abandons the child, which is reaped when it ends.
    func abandon() {
        let wasReachable = isReachable.withLock { isReachable in
            defer { isReachable = false }
            return isReachable
        }
        // Only the process that started the child may reap it, not a fork of that process.
        guard wasReachable, forkCount == rlk_fork_count() else { return }
        system.reapLater(processIdentifier, descriptor)
    }
}
