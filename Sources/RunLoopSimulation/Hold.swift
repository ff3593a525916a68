@_spi(Ports) public import RunLoopCore

extension Simulation {
    /// Keeps virtual time where it is until something outside the simulation has happened, such as an answer from
    /// another process. Without a hold, the time would jump to the next timeout long before the answer can arrive.
    ///
    /// ```swift
    /// let answer = simulation.hold(for: "the answer of the printer")
    /// ask(printer) { answer.release() }
    /// ```
    ///
    /// Take the hold before the request leaves. While any thread holds the time, everything that can happen at the
    /// present time still happens. Then all threads wait in real time: for descriptors, for requests from threads
    /// outside the simulation, and for the release. The outcome then depends on the world outside, and
    /// ``isReproducible`` is false from now on.
    ///
    /// The library takes some holds itself: for children that run, for answers that tasks await from other processes,
    /// and for output that those processes have not read.
    ///
    /// - Parameters:
    ///   - what: the awaited event, for reports.
    ///   - limit: the longest wait in real time, all waits taken together; 5 s by default. A hold that reaches its
    ///     limit is given up: it becomes one of the ``escapes``, and time continues.
    /// - Returns: the hold. It ends when it is released or dropped, or when the calling thread has ended.
    /// - Precondition: the calling thread is one of the simulation's.
    public func hold(for what: String, limit: Duration = .seconds(5)) -> Hold {
        require(limit > .zero, "the limit of a hold is longer than zero; take no hold instead")
        return Hold(place.thread, what, limit, on: timeline)
    }

    /// A hold on virtual time; see ``Simulation/hold(for:limit:)``. `Sendable`.
    public final class Hold: Sendable {
        private let timeline: Timeline
        private let number: Int

        init(_ thread: Timeline.Thread, _ what: String, _ limit: Duration = .seconds(5), on timeline: Timeline) {
            self.timeline = timeline
            number = timeline.hold(thread, for: what, limit)
        }

        deinit {
            release()
        }

        /// Ends the hold. Time continues once no other hold keeps it. Any thread; harmless when repeated.
        public func release() {
            timeline.releaseHold(number)
        }
    }

    /// A Boolean value that indicates whether another run with the same seed is the same, as far as the simulation
    /// knows: `false` after an escape or a hold. <doc:VirtualTime> names the causes that the simulation cannot see.
    public var isReproducible: Bool { timeline.state.withLock { $0.escapes.isEmpty && !$0.hasBeenHeld } }
}

@_spi(Ports) extension Simulation.Hold: TimeHold, Opaque {}
