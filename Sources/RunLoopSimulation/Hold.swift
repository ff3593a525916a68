internal import CShims
internal import Glibc
public import RunLoopCore

extension Simulation {
    /// Keeps virtual time where it is, until something outside of the simulation has happened: another process has
    /// answered, say. Without it, the time would jump to the next timeout long before the answer can be there.
    ///
    /// ```swift
    /// let answer = simulation.hold(for: "the answer of the printer")
    /// ask(printer) { answer.release() }
    /// ```
    ///
    /// Take it before the request leaves. While any thread holds the time, everything goes on that can happen at the
    /// present time. When there is no more of it, all threads wait in real time: for descriptors, for what threads outside
    /// of the simulation ask of them, and for the release. So the outcome depends on the world outside, and
    /// ``isReproducible`` is false from now on.
    ///
    /// Some holds are taken by the library: for children that run, for the answers that tasks await from other processes,
    /// and for what these do not read.
    ///
    /// - Parameters:
    ///   - what: what is awaited, for reports.
    ///   - limit: how long it is waited for in real time, all waits taken together; 5 s unless given. A hold that has had
    ///     its time is given up: it is one of the ``escapes``, and time goes on.
    /// - Returns: the hold. It ends when it is released, when it is let go, or when the calling thread has ended.
    /// - Precondition: the calling thread is one of the simulation's.
    public func hold(for what: String, limit: Duration = .seconds(5)) -> Hold {
        require(limit > .zero, "a hold lasts for more than no time; take none instead")
        return Hold(place.index, what, limit, on: timeline)
    }

    /// What keeps virtual time where it is; see ``Simulation/hold(for:limit:)``. It is `Sendable`.
    public final class Hold: TimeHold {
        private let timeline: Timeline
        private let number: Int

        init(_ index: Int, _ what: String, _ limit: Duration = .seconds(5), on timeline: Timeline) {
            self.timeline = timeline
            number = timeline.hold(index, for: what, limit)
        }

        deinit {
            release()
        }

        /// Lets time go on, unless another hold keeps it. Any thread; harmless when repeated.
        public func release() {
            timeline.releaseHold(number)
        }
    }

    /// Whether another run with the same seed is the same, as far as the simulation knows: nothing has escaped, and no
    /// hold was taken. What it cannot see is named in <doc:VirtualTime>.
    public var isReproducible: Bool { timeline.isReproducible }
}

/// Real time, for a thread that waits for what is outside of its simulation.
final class OutsideWait: Sendable {
    /// Readable when the wait is to end.
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

    /// Waits until one of the descriptors is ready, or somebody rings.
    ///
    /// - Returns: how long that took.
    func wait(for requests: [pollfd], atMost limit: Duration) -> Duration {
        let start = ContinuousClock.now
        var requests = [pollfd(fd: bell, events: Int16(POLLIN), revents: 0)] + requests
        // A millisecond more, because the rest of one counts as none.
        let milliseconds = limit.saturatedNanoseconds / 1_000_000 + 1
        if poll(&requests, nfds_t(requests.count), Int32(clamping: milliseconds)) > 0, requests[0].revents != 0 {
            var rings: UInt64 = 0
            _ = read(bell, &rings, 8)
        }
        return ContinuousClock.now - start
    }
}
