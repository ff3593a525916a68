internal import CShims
internal import Glibc
@_spi(Ports) internal import RunLoopCore

/// A wait in real time, for a thread that awaits something outside its simulation.
final class OutsideWait: Sendable {
    /// A descriptor that is readable when the wait is to end.
    private let bell = rlk_eventfd()

    init() {
        require(bell >= 0, "the system has no descriptor left for a simulation that waits for the outside")
    }

    deinit {
        close(bell)
    }

    /// Ends the wait, now or as soon as it begins. Any thread.
    func ring() {
        var one: UInt64 = 1
        _ = write(bell, &one, 8)
    }

    /// Waits until one of the descriptors is ready, or `ring()` is called.
    ///
    /// - Returns: the time that this took.
    func wait(for requests: [pollfd], atMost limit: Duration) -> Duration {
        // Measured with the clocks of the real world.
        let flag = rlk_set_simulated(nil)
        defer { rlk_set_simulated(flag) }
        let start = ContinuousClock.now
        var requests = [pollfd(fd: bell, events: Int16(POLLIN), revents: 0)] + requests
        // One millisecond more, because a fraction counts as none.
        let milliseconds = limit.nanoseconds / 1_000_000 + 1
        if poll(&requests, nfds_t(requests.count), Int32(clamping: milliseconds)) > 0, requests[0].revents != 0 {
            var rings: UInt64 = 0
            _ = read(bell, &rings, 8)
        }
        return ContinuousClock.now - start
    }
}
