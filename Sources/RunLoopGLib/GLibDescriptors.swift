#if Adapters
internal import CGLib
internal import Glibc
internal import RunLoopKit

/// The descriptors that GLib waits for, behind one that a loop can wait for.
struct GLibDescriptors {
    /// An epoll descriptor.
    private(set) var epoll: Int32
    /// The answer of GLib's query.
    private var fds = UnsafeMutableBufferPointer<GPollFD>.allocate(capacity: 16)
    /// The descriptors that are watched, and those that are to be, by their numbers.
    private var watched: [Watch] = []
    private var wanted: [Watch] = []

    private struct Watch {
        let descriptor: Int32
        var events: UInt32
    }

    init() throws(GLibError) {
        epoll = epoll_create1(Int32(EPOLL_CLOEXEC))
        guard epoll >= 0 else { throw .system(errno: errno) }
    }

    mutating func close() {
        _ = Glibc.close(epoll)
        epoll = -1
        fds.deallocate()
        fds = UnsafeMutableBufferPointer(start: nil, count: 0)
    }

    /// Begins anew, with a descriptor that watches none.
    mutating func renew() -> Bool {
        _ = Glibc.close(epoll)
        epoll = epoll_create1(Int32(EPOLL_CLOEXEC))
        watched.removeAll(keepingCapacity: true)
        return epoll >= 0
    }

    // MARK: GLib's steps

    /// - Returns: the number of descriptors.
    mutating func query(_ context: OpaquePointer, _ priority: Int32, _ timeout: inout Int32) -> Int32 {
        while true {
            let count = g_main_context_query(context, priority, &timeout, fds.baseAddress, Int32(fds.count))
            guard count > fds.count else { return count }
            fds.deallocate()
            fds = .allocate(capacity: 2 * Int(count))
        }
    }

    /// Looks which of the descriptors are ready.
    ///
    /// - Returns: their number.
    func poll(_ count: Int32) -> Int32 { g_poll(fds.baseAddress, UInt32(count), 0) }

    func check(_ context: OpaquePointer, _ priority: Int32, _ count: Int32) -> Bool {
        g_main_context_check(context, priority, fds.baseAddress, count) != 0
    }

    mutating func watch(_ count: Int32) -> Bool { watch(UnsafeBufferPointer(rebasing: fds[..<Int(count)])) }

    // MARK: Watching

    /// Watches these descriptors and no others.
    ///
    /// - Returns: `false` if one of them cannot be waited for, because it is a file or closed: poll says at once that it is
    ///   ready.
    mutating func watch(_ fds: UnsafeBufferPointer<GPollFD>) -> Bool {
        wanted.removeAll(keepingCapacity: true)
        var isSorted = true
        for fd in fds where fd.fd >= 0 {
            let events = UInt32(fd.events)
            if let last = wanted.last, last.descriptor >= fd.fd {
                if last.descriptor == fd.fd {
                    wanted[wanted.count - 1].events |= events
                    continue
                }
                isSorted = false
            }
            wanted.append(Watch(descriptor: fd.fd, events: events))
        }
        // GLib has them by their numbers.
        if !isSorted { wanted.sort { $0.descriptor < $1.descriptor } }
        var place = 0
        for watch in watched {
            while place < wanted.count, wanted[place].descriptor < watch.descriptor { place += 1 }
            if place < wanted.count, wanted[place].descriptor == watch.descriptor { continue }
            epoll_ctl(epoll, EPOLL_CTL_DEL, watch.descriptor, nil)
        }
        // Each time, also for those that are watched: a number may stand for another file than it did.
        var canWait = true
        for watch in wanted where !set(watch) { canWait = false }
        swap(&watched, &wanted)
        return canWait
    }

    private func set(_ watch: Watch) -> Bool {
        var event = epoll_event(events: watch.events, data: epoll_data_t(fd: watch.descriptor))
        if epoll_ctl(epoll, EPOLL_CTL_MOD, watch.descriptor, &event) == 0 { return true }
        return errno == ENOENT && epoll_ctl(epoll, EPOLL_CTL_ADD, watch.descriptor, &event) == 0
    }
}
#endif
