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

    /// Whether another run with the same seed is the same, as far as the simulation knows: nothing has escaped, no hold was
    /// taken, and no TLS connection has used an ECDSA key of its own, whose signatures have random lengths. What it cannot
    /// see is named in <doc:VirtualTime>.
    public var isReproducible: Bool { timeline.isReproducible }
}
