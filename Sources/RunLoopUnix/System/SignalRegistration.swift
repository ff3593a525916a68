internal import CShims
internal import Glibc

/// An entry in the process's table of signal registrations. The signal handler, on any thread at any time, counts
/// deliveries in the entry's event descriptor, which the loop watches like any other. Unread deliveries thus wait in
/// the kernel and wake a sleeping loop, without a lock or another thread.
final class SignalRegistration: SignalCounter {
    let descriptor: Int32
    private var entry: UnsafeMutableRawPointer?
    private let forkCount = rlk_fork_count()

    init(_ signal: Int32) throws(SystemError) {
        descriptor = rlk_eventfd()
        guard descriptor >= 0 else { throw .last("make a descriptor to count signal \(signal)") }
        entry = rlk_signal_add(signal, descriptor)
        guard entry != nil else {
            let error = SystemError.last("handle signal \(signal)")
            close(descriptor)
            throw error
        }
    }

    deinit {
        end()
    }

    /// Ends the registration. The last one of a signal restores the former disposition.
    func end() {
        guard let entry else { return }
        assert(descriptor >= 0, "a registration has no descriptor")
        self.entry = nil
        // In a forked child, the table has been cleared, and another registration may use the entry.
        if forkCount == rlk_fork_count() { rlk_signal_remove(entry) }
        // The signal handler no longer writes to the descriptor.
        close(descriptor)
    }

    func take() -> Int {
        var count: UInt64 = 0
        guard entry != nil, read(descriptor, &count, 8) == 8 else { return 0 }
        return Int(clamping: count)
    }

    func prime() {
        var one: UInt64 = 1
        guard entry != nil else { return }
        _ = write(descriptor, &one, 8)
    }
}
