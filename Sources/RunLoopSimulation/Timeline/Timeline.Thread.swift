internal import CShims
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
        case join(UnownedReference<Thread>)
        /// The moment when another thread opens the latch.
        case latch(UnownedReference<LatchState>)
        /// The signal of a semaphore, a condition or a lock of the C library, or of a futex, without a limit.
        case signal
        case ended
    }

    /// A lock that a thread wants, which stays where it is as long as the thread does.
    struct FoundLock {
        let address: UnsafeRawPointer
        let findHolder: @convention(c) (UnsafeRawPointer?) -> Int32

        /// The number of the thread that has it now.
        var holder: Int32 { findHolder(address) }
    }

    /// The signal that a thread waits for without a limit.
    struct Awaited {
        let what: String
        /// The lock, if it is one.
        let lock: FoundLock?
        /// Where in the program the thread waits, if somebody can tell.
        let place: (@Sendable () -> String?)?
    }

    /// A thread of the simulation, which rests until it is given its turn.
    final class Thread: @unchecked Sendable {
        // Unchecked: everything that varies is read and changed under the timeline's lock, or by the thread whose turn it
        // is. A hand-over of the turn orders these. Nor is it checked for exclusive access: the next turn is chosen with a
        // look at every living thread. With ten, a turn took 3,596 instructions with checked and counted references, and
        // takes 2,080.

        let name: String
        /// Its number among the threads of the simulation; they are counted in the order in which they were started.
        let number: Int
        /// Whether it only serves others, and so is the last to learn that nothing can happen.
        let isService: Bool
        let process: Process
        /// The thread of the system, once it runs.
        var system: pthread_t?
        /// The number by which locks know it, which is the kernel's for that thread.
        var lockNumber: Int32 = 0
        /// The same for those who wait for its end.
        var handle: ThreadHandle?
        @exclusivity(unchecked) var loop: UnownedReference<RunLoop>?
        @exclusivity(unchecked) var rest = Rest.none
        @exclusivity(unchecked) var isWoken = false
        /// The reason for which its last rest ended.
        @exclusivity(unchecked) var outcome = WaitOutcome.woke
        /// Counts the begins and ends of its waits for signals: a signal that comes after an end is ignored.
        @exclusivity(unchecked) var signalWaits = 0
        /// The signal that it waits for.
        @exclusivity(unchecked) var awaited: Awaited?
        /// Called when it ends, before the others have their turn.
        var ended: @Sendable () -> Void = {}
        /// The time when it last came to rest.
        @exclusivity(unchecked) var lastRest = RunLoop.Instant(nanoseconds: 0)
        @exclusivity(unchecked) var watches: [SourceToken: (descriptor: Int32, events: DescriptorEvents)] = [:] {
            didSet { watchesAny = clockWatch != nil || !watches.isEmpty }
        }
        /// The token of the watch on the wall clock, and whether the clock was set.
        @exclusivity(unchecked) var clockWatch: (token: SourceToken, wasSet: Bool)? {
            didSet { watchesAny = clockWatch != nil || !watches.isEmpty }
        }
        @exclusivity(unchecked) private var watchesAny = false

        private let fiber: OpaquePointer
        /// Whether it waits for its turn, or is about to.
        @exclusivity(unchecked) private var isParked = true

        /// - Parameter main: the first thread of the simulation, on which all run; `nil` for that one itself.
        init(_ name: String, number: Int, isService: Bool, of process: Process, besides main: Thread?) {
            (self.name, self.number, self.isService, self.process) = (name, number, isService, process)
            let fiber = main.map { rlk_make_fiber($0.fiber) } ?? rlk_make_carrier()
            require(fiber != nil, "no memory is left for a thread of a simulation")
            self.fiber = fiber!
        }

        deinit {
            rlk_free_fiber(fiber)
        }

        /// The lane of its events.
        var lane: String { process.machine ?? name }
        /// Its name in that lane, unless it is the first thread there.
        var nameInLane: String? {
            guard let machine = process.machine, name != machine, number != 0 else { return nil }
            return process.isTest ? name : String(name.dropFirst(machine.count + 1))
        }

        // MARK: Its turn

        /// Ends its rest.
        func begin(_ outcome: WaitOutcome) {
            rest = .none
            self.outcome = outcome
        }

        /// Whether it waits, and not works, until a date.
        var isWaiting: Bool {
            if case .until(_, wakeable: true) = rest { true } else { false }
        }

        /// Whether it waits for a signal without a limit.
        var isBlocked: Bool {
            if case .signal = rest { true } else { false }
        }

        /// Words for the signal that it waits for, for its task, and for the place in the program.
        ///
        /// - Parameter lock: words for the lock, if it is one.
        func awaitedWords(_ lock: String?) -> String {
            let task = loop?.with { $0.runningJob?.task }.map { "\($0)" }
            let places = [task, awaited?.place?()].compactMap(\.self).map { ", in \($0)" }
            return (lock ?? awaited?.what ?? "a signal") + places.joined()
        }

        /// Whether it is the calling thread, in its own turn.
        var isCurrent: Bool { !isParked && system == pthread_self() }

        /// Whether it has ended, and nobody has to wait for that any more.
        var isGone: Bool {
            if case .ended = rest { handle!.isReleased } else { false }
        }

        /// Called by the thread, before it gives its turn away.
        func park() { isParked = true }

        /// Called first by the thread: waits for its turn. Does not return if the thread was stopped.
        func takeFirstTurn() { hasTurn(isStopped: rlk_begin_fiber(fiber)) }

        /// Called by the thread: gives the turn to another one, and waits until it has it again. Does not return if the
        /// thread was stopped.
        ///
        /// Called by the thread, if its turn has come back to it at once.
        func unpark() { isParked = false }

        /// - Parameter next: `nil` if a thread outside of the simulation will give somebody the turn.
        func passTurn(to next: Thread?) { hasTurn(isStopped: rlk_pass_turn(fiber, next?.fiber)) }

        private func hasTurn(isStopped: Int32) {
            if isStopped != 0 { rlk_end_thread() }
            isParked = false
        }

        /// Called last by the thread: gives the turn to another one. From then on it runs beside the simulation.
        func leave(to next: Thread?) { rlk_leave_carrier(fiber, next?.fiber) }

        /// Called by a thread outside of the simulation, in which nobody has the turn.
        func giveTurn() { rlk_give_turn(fiber) }

        /// Ends the thread where it rests: it runs nothing more of the program, not even a deinit. What its frames hold is
        /// never released. On the thread itself this takes effect when it next waits for its turn.
        func stop() {
            // A thread that neither waits nor is the calling one runs a simulation of its own.
            let rests = isParked && system != pthread_self()
            rlk_stop_fiber(fiber, rests ? 1 : 0)
            if rests { handle?.join() } else { handle?.detach() }
        }

        // MARK: Watched descriptors

        /// The requests for `poll`, one for each watched descriptor.
        var requests: [pollfd] { watches.values.filter { !$0.events.isEmpty }.map(Self.request) }

        private static func request(_ watch: (descriptor: Int32, events: DescriptorEvents)) -> pollfd {
            let reading = watch.events.contains(.readable) ? Int16(POLLIN) : 0
            let writing = watch.events.contains(.writable) ? Int16(POLLOUT) : 0
            return pollfd(fd: watch.descriptor, events: reading | writing, revents: 0)
        }

        /// Whether another thread has woken it, or something that it watches is ready.
        @inline(__always)
        var isRoused: Bool { isWoken || (watchesAny && hasReady) }

        @inline(never)
        private var hasReady: Bool { clockWatch?.wasSet == true || !ready.isEmpty }

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

    /// The threads of a simulated process, which live and die together, or the test's own threads.
    final class Process: @unchecked Sendable {
        // Unchecked: what varies is read and changed under the timeline's lock.

        /// The machine whose lane its threads share; without one, each of the test's own threads has a lane.
        var machine: String?
        let isTest: Bool
        /// The time when it began to end.
        var ending: RunLoop.Instant?
        /// Its threads, also those that have ended, as long as somebody has to wait for that.
        var threads: [Thread] = []

        init(on machine: String?, isTest: Bool) {
            (self.machine, self.isTest) = (machine, isTest)
        }
    }

    /// A latch, shared by its waiter and its opener. Its state changes under the lock.
    final class LatchState: Sendable {
        let waiter: Thread
        /// The thread that opens it, if it belongs to the simulation.
        let opener: Thread
        /// Whether a thread of another world opens it; then the simulation cannot know whether it may still open.
        let isOutside: Bool
        let isOpen = Atomic(false)
        /// Whether the thread has learned that nobody will open it.
        let isTold = Atomic(false)

        init(waiter: Thread, opener: Thread, isOutside: Bool) {
            (self.waiter, self.opener, self.isOutside) = (waiter, opener, isOutside)
        }
    }
}
