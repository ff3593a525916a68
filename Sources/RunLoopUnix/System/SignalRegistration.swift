internal import CShims
internal import Glibc

/// An entry in the process's table of signal registrations. To the signal handler, on any number of threads at any
/// time, its event descriptor is a counter; to the loop it is a descriptor like any other. So unread deliveries wait in
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

    /// The last registration of a signal that ends restores the former disposition.
    func end() {
        guard let entry else { return }
        self.entry = nil
        // In a forked child the table has been cleared, and another registration may have the entry now.
        if forkCount == rlk_fork_count() { rlk_signal_remove(entry) }
        // Nothing writes to it any more.
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
