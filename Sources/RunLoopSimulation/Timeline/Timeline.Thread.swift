internal import Glibc
internal import RunLoopCore
internal import Synchronization

extension Timeline {
    /// The event that ends a thread's rest.
    enum Rest {
        /// It runs, or will run when its turn comes.
        case none
        /// A deadline, or a wake-up unless the thread is at work.
        case until(RunLoop.Instant, wakeable: Bool)
        /// The moment when no other thread has anything to do.
        case calm
        /// The end of another thread.
        case join(Int)
        /// The moment when another thread opens the latch.
        case latch(LatchState)
        case ended
    }

    /// Gives a thread its turn, with the reason for which its wait has ended.
    final class Turn: Sendable {
        private let handoff = Handoff()
        // Unsafe, but the thread reads it only after its turn was given to it, and until then nobody changes it again.
        nonisolated(unsafe) var outcome = WaitOutcome.woke
        /// The time when the thread last came to rest.
        nonisolated(unsafe) var lastRest = RunLoop.Instant(nanoseconds: 0)

        func give() { handoff.signal() }
        func take() { handoff.wait() }
    }

    /// A latch, shared by its waiter and its opener. Its state changes under the lock.
    final class LatchState: Sendable {
        /// The thread that waits at it.
        let index: Int
        /// The thread that opens it, if it belongs to the simulation.
        let opener: Int
        /// Whether a thread of another world opens it; then the simulation cannot know whether it may still open.
        let isOutside: Bool
        let isOpen = Atomic(false)
        /// Whether the thread has learned that nobody will open it.
        let isTold = Atomic(false)

        init(index: Int, opener: Int, isOutside: Bool) {
            self.index = index
            self.opener = opener
            self.isOutside = isOutside
        }
    }

    struct Participant {
        let name: String
        /// Whether it only serves other threads, and so is the last to learn that nothing can happen.
        let isService: Bool
        let turn = Turn()
        var thread: pthread_t?
        var rest = Rest.none
        var isWoken = false
        var watches: [SourceToken: (descriptor: Int32, events: DescriptorEvents)] = [:]
        /// The token of the watch on the wall clock, and whether the clock was set.
        var clockWatch: (token: SourceToken, wasSet: Bool)?

        /// The requests for `poll`, one for each watched descriptor.
        var requests: [pollfd] { watches.values.filter { !$0.events.isEmpty }.map(Self.request) }

        private static func request(_ watch: (descriptor: Int32, events: DescriptorEvents)) -> pollfd {
            let reading = watch.events.contains(.readable) ? Int16(POLLIN) : 0
            let writing = watch.events.contains(.writable) ? Int16(POLLOUT) : 0
            return pollfd(fd: watch.descriptor, events: reading | writing, revents: 0)
        }

        var hasReady: Bool { clockWatch?.wasSet == true || (!watches.isEmpty && !ready.isEmpty) }

        /// The watched descriptors that are ready now, by token.
        var ready: [(SourceToken, DescriptorEvents)] {
            guard !watches.isEmpty else { return [] }
            let watches = watches.sorted { $0.key.slot < $1.key.slot }
            var requests = watches.map { Self.request($0.value) }
            guard poll(&requests, nfds_t(requests.count), 0) > 0 else { return [] }
            return zip(watches, requests).compactMap { watch, request in
                var events: DescriptorEvents = []
                let failed = Int32(request.revents) & (POLLHUP | POLLERR) != 0
                if failed || Int32(request.revents) & POLLIN != 0 { events.insert(.readable) }
                if failed || Int32(request.revents) & POLLOUT != 0 { events.insert(.writable) }
                events.formIntersection(watch.value.events)
                return events.isEmpty ? nil : (watch.key, events)
            }
        }
    }
}
