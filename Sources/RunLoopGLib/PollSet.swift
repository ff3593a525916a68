#if Adapters
internal import CGLib
internal import RunLoopKit

/// The descriptors that GLib waits for, and its time-out.
final class PollSet {
    /// The time-out in milliseconds; negative for none.
    private(set) var timeout: Int32 = -1
    private var priority: Int32 = 0
    private var count: Int32 = 0
    private var fds = UnsafeMutableBufferPointer<GPollFD>.allocate(capacity: 16)
    /// The index of the descriptor that ``isReady(_:)`` found last.
    private var place = 0

    deinit {
        fds.deallocate()
    }

    // GLib calls functions of sources in its first and fourth steps, so no access to a property may be open.

    /// Takes GLib's first two steps, prepare and query.
    func prepare(_ context: OpaquePointer) {
        var priority = Int32(0)
        g_main_context_prepare(context, &priority)
        self.priority = priority
        while true {
            count = g_main_context_query(context, priority, &timeout, fds.baseAddress, Int32(fds.count))
            guard count > fds.count else { return }
            fds.deallocate()
            fds = .allocate(capacity: 2 * Int(count))
        }
    }

    /// Takes GLib's third step, and returns the number of ready descriptors.
    func poll(_ function: GPollFunc, mayWait: Bool) -> Int32 {
        function(fds.baseAddress, UInt32(count), mayWait ? timeout : 0)
    }

    /// Takes GLib's fourth step, and returns whether there are sources to dispatch.
    func check(_ context: OpaquePointer) -> Bool {
        g_main_context_check(context, priority, fds.baseAddress, count) != 0
    }

    /// Returns whether the poll found a descriptor ready.
    func isReady(_ descriptor: Int32) -> Bool {
        if place >= count || fds[place].fd != descriptor {
            guard let found = fds[..<Int(count)].firstIndex(where: { $0.fd == descriptor }) else { return false }
            place = found
        }
        return fds[place].revents != 0
    }
}
#endif
