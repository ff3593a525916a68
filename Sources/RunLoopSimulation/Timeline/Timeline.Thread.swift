internal import CShims
internal import Glibc
@_spi(Ports) internal import RunLoopCore
internal import Synchronization

extension Timeline {
    /// The event that ends a thread's rest.
    enum Rest {
        /// The thread runs, or will run when its turn comes.
        case none
        /// The thread rests until a deadline, or until a wake-up if it is not at work.
        case until(RunLoop.Instant, wakeable: Bool)
        /// The thread rests until no other thread has anything to do.
        case calm
        /// The thread rests until another thread has ended.
        case join(UnownedReference<Thread>)
        /// The thread rests until another thread opens the latch.
        case latch(UnownedReference<LatchState>)
        /// The thread rests, without a limit, until the signal of a semaphore, a condition or a lock of the C library,
        /// or of a futex.
        case signal
        case ended
    }

    /// A lock that a thread wants, at an address that is valid as long as the thread is.
    struct FoundLock {
        let address: UnsafeRawPointer
        let findHolder: @convention(c) (UnsafeRawPointer?) -> Int32

        /// The number of the thread that holds the lock now.
        var holder: Int32 { findHolder(address) }
    }

    /// The signal that a thread waits for without a limit.
    struct Awaited {
        let what: String
        /// The lock, if the thread waits for one.
        let lock: FoundLock?
        /// Returns the place in the program where the thread waits, if known.
        let place: (@Sendable () -> String?)?
    }

    /// A thread of the simulation, which rests until it receives its turn.
    final class Thread: @unchecked Sendable {
        // Unchecked: everything that varies is read and changed under the timeline's lock, or by the thread whose turn
        // it is. A hand-over of the turn orders these. Exclusive access is not checked either, because choosing the
        // next turn looks at every living thread. With ten, a turn took 3,596 instructions with checked and counted
        // references, and takes 2,080.

        let name: String
        /// The number of the thread in the simulation, in the order in which threads were started.
        let number: Int
        /// `true` for a thread that only serves others, and so is the last to learn that nothing can happen.
        let isService: Bool
        let process: Process
        /// The system's thread, once this one runs.
        var system: pthread_t?
        /// The number by which locks know the thread, which is the kernel's.
        var lockNumber: Int32 = 0
        /// The handle with which others wait for the thread's end.
        var handle: ThreadHandle?
        var loop: UnownedReference<RunLoop>?
        var rest = Rest.none
        var isWoken = false
        /// The reason why the thread's last rest ended.
        var outcome = WaitOutcome.woke
        /// The number of beginnings and ends of the thread's waits for signals: a signal that comes after an end is
        /// ignored.
        var signalWaits = 0
        /// The signal that the thread waits for.
        var awaited: Awaited?
        /// Called when the thread ends, before the others have their turn.
        var ended: @Sendable () -> Void = {}
        /// The time when the thread last came to rest.
        var lastRest = RunLoop.Instant(nanoseconds: 0)
        var watches: [SourceToken: (descriptor: Int32, events: DescriptorEvents)] = [:] {
            didSet { watchesAny = clockWatch != nil || !watches.isEmpty }
        }
        /// The token of the watch on the wall clock, and whether the clock was set.
        var clockWatch: (token: SourceToken, wasSet: Bool)? {
            didSet { watchesAny = clockWatch != nil || !watches.isEmpty }
        }
        private var watchesAny = false

        private let fiber: OpaquePointer
        /// `true` while the thread waits for its turn, or is about to.
        private var isParked = true

        /// - Parameter main: the first thread of the simulation, on which all run; `nil` for the first thread itself.
        init(_ name: String, number: Int, isService: Bool, of process: Process, besides main: Thread?) {
            (self.name, self.number, self.isService, self.process) = (name, number, isService, process)
            let fiber = main.map { rlk_make_fiber($0.fiber) } ?? rlk_make_carrier()
            require(fiber != nil, "no memory is left for a thread of a simulation")
            self.fiber = fiber!
        }

        deinit {
            rlk_free_fiber(fiber)
        }

        /// The lane of the thread's events.
        var lane: String { process.machine ?? name }
        /// The thread's name in its lane; `nil` for the first thread there.
        var nameInLane: String? {
            guard let machine = process.machine, name != machine, number != 0 else { return nil }
            return process.isTest ? name : String(name.dropFirst(machine.count + 1))
        }

        // MARK: Its turn

        /// Ends the thread's rest.
        func begin(_ outcome: WaitOutcome) {
            rest = .none
            self.outcome = outcome
        }

        /// `true` if the thread waits until a date, and does not work until then.
        var isWaiting: Bool {
            if case .until(_, wakeable: true) = rest { true } else { false }
        }

        /// `true` if the thread waits for a signal without a limit.
        var isBlocked: Bool {
            if case .signal = rest { true } else { false }
        }

        /// Returns words for the signal that the thread waits for, for its task, and for the place in the program.
        ///
        /// - Parameter lock: words for the lock, if the thread waits for one.
        func awaitedWords(_ lock: String?) -> String {
            let task = loop?.with { $0.runningJob?.task }.map { "\($0)" }
            let places = [task, awaited?.place?()].compactMap(\.self).map { ", in \($0)" }
            return (lock ?? awaited?.what ?? "a signal") + places.joined()
        }

        /// `true` if this is the calling thread, in its own turn.
        var isCurrent: Bool { !isParked && system == pthread_self() }

        /// `true` once the thread has left the simulation.
        var hasEnded: Bool {
            if case .ended = rest { true } else { false }
        }

        /// `true` once the thread has ended and its end need not be awaited any more.
        var isGone: Bool { hasEnded && handle!.isReleased }

        /// Prepares to pass on the turn. Called by the thread itself.
        func park() { isParked = true }

        /// Waits for the thread's first turn. Called first by the thread itself; does not return if the thread was
        /// stopped.
        func takeFirstTurn() { hasTurn(isStopped: rlk_begin_fiber(fiber)) }

        /// Gives the turn to another thread, and waits until it comes back. Called by the thread itself; does not
        /// return if the thread was stopped.
        ///
        /// Takes back a turn that has returned at once. Called by the thread itself.
        func unpark() { isParked = false }

        /// - Parameter next: `nil` if a thread outside the simulation will give the turn.
        func passTurn(to next: Thread?) { hasTurn(isStopped: rlk_pass_turn(fiber, next?.fiber)) }

        private func hasTurn(isStopped: Int32) {
            if isStopped != 0 { rlk_end_thread() }
            isParked = false
        }

        /// Gives the turn to another thread, and continues beside the simulation. Called last by the thread itself.
        func leave(to next: Thread?) { rlk_leave_carrier(fiber, next?.fiber) }

        /// Gives the turn to this thread. Called by a thread outside the simulation, in which no thread has the turn.
        func giveTurn() { rlk_give_turn(fiber) }

        /// Ends the thread where it rests: it runs nothing more of the program, not even a deinit. The objects held by
        /// its frames are never released. On the thread itself this takes effect when it next waits for its turn.
        func stop() {
            // A thread that neither waits nor is the calling one runs a simulation of its own.
            let rests = isParked && system != pthread_self()
            rlk_stop_fiber(fiber, rests ? 1 : 0)
            if rests { handle?.join() } else if system != pthread_self() { handle?.detach() }
        }

        // MARK: Watched descriptors

        /// The requests for `poll`, one for each watched descriptor.
        var requests: [pollfd] { watches.values.filter { !$0.events.isEmpty }.map(Self.request) }

        private static func request(_ watch: (descriptor: Int32, events: DescriptorEvents)) -> pollfd {
            let reading = watch.events.contains(.readable) ? Int16(POLLIN) : 0
            let writing = watch.events.contains(.writable) ? Int16(POLLOUT) : 0
            return pollfd(fd: watch.descriptor, events: reading | writing, revents: 0)
        }

        /// `true` if another thread has woken this one, or a descriptor or clock that it watches is ready.
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
        // Unchecked: variable state is read and changed under the timeline's lock.

        /// The machine whose lane its threads share; without one, each of the test's own threads has a lane.
        var machine: String?
        let isTest: Bool
        /// The time when the process began to end.
        var ending: RunLoop.Instant?
        /// The threads of the process, including ended ones whose end must still be awaited.
        var threads: [Thread] = []

        init(on machine: String?, isTest: Bool) {
            (self.machine, self.isTest) = (machine, isTest)
        }
    }

    /// A latch, shared by its waiter and its opener. Its state changes under the timeline's lock.
    final class LatchState: Sendable {
        let waiter: Thread
        /// The thread that opens the latch, if it belongs to the simulation.
        let opener: Thread
        /// `true` if a thread of another world opens the latch; the simulation then cannot know whether it may still
        /// open.
        let isOutside: Bool
        let isOpen = Atomic(false)
        /// `true` once the waiter has learned that the latch will never open.
        let isTold = Atomic(false)

        init(waiter: Thread, opener: Thread, isOutside: Bool) {
            (self.waiter, self.opener, self.isOutside) = (waiter, opener, isOutside)
        }
    }
}
