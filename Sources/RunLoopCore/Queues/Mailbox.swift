internal import Synchronization

/// The states of a mailbox's atomic word.
private enum Signal {
    static let none: UInt8 = 0
    static let asleep: UInt8 = 1
    static let mail: UInt8 = 2
}

/// The requests of other threads to a loop, until the loop collects them.
///
/// One lock guards the mail, and another one the state of the loop's timer sources. The atomic word lets a loop without
/// mail pass without a lock, and makes one wake-up enough for any number of posts to a sleeping loop.
final class Mailbox<Loop: AnyObject>: Sendable {
    private struct State: ~Copyable {
        var mail = Mail<Loop>()
        var isClosed = false
        /// Jobs cannot be refused: they are taken until the end of the loop has run the last of them.
        var takesJobs = true
        /// The thread whose mail has ended the loop's last sleep, while a recorder needs it.
        var awakener: ThreadName?
        var executors: [RunLoop.Modes: any JobExecutor<Loop>] = [:]
    }

    private let state = Locked(State())
    // With a gate always `mail`, so that a look leads to the gate: a loop without a gate pays nothing for it.
    private let signal: Atomic<UInt8>
    /// The mail that waits for the loop of a recorded or replayed world.
    private let gate: MailGate<Loop>?
    let waker: any Waker
    private let notesMail: Bool
    /// The name of the loop's thread, if it has one.
    let name: String?

    /// Guards the state of the loop's timer sources: a lock for each of a million sources would cost more than it
    /// gains. The value has no meaning. An empty one would lie at the address of its box, and ThreadSanitizer would
    /// confuse the two.
    let sources = Locked(false)

    /// Indicates whether a recorder of the loop needs the threads that post.
    @inline(__always)
    var notesPosters: Bool {
        get { recorded.load(ordering: .relaxed) }
        set { recorded.store(newValue, ordering: .relaxed) }
    }
    private let recorded = Atomic(false)
    /// Spares a loop that was not woken by mail the lock.
    private let hasAwakener = Atomic(false)

    /// The number of the innermost run; 0 while the loop does not run.
    let activation = Atomic<UInt64>(0)

    init(waker: any Waker, name: String? = nil) {
        self.waker = waker
        notesMail = waker.notesMail
        self.name = name
        gate = waker.mailOrder.map { MailGate($0) }
        signal = Atomic(gate == nil ? Signal.none : Signal.mail)
    }

    /// Indicates whether the order of mail is recorded or repeated.
    var keepsOrder: Bool { gate != nil }

    /// The loop as error messages name it.
    var loopDescription: String { name.map { "the run loop \(quoted($0))" } ?? "the run loop" }

    /// - Returns: `false` if the loop has ended and the request will not be carried out.
    func post(_ request: Mail<Loop>.Request) -> Bool {
        if gate != nil { return postAtGate { $0.requests.append(request) } }
        return add { $0.requests.append(request) }
    }

    /// - Returns: `false` if the loop has ended and the block will not run.
    @inline(__always)
    func post(_ block: consuming Block<Loop>) -> Bool {
        if gate != nil { return postAtGate(block) }
        var block = Optional(block)
        return add { $0.blocks.append(block.take()!) }
    }

    @inline(never)
    private func postAtGate(_ block: Block<Loop>) -> Bool { postAtGate { $0.blocks.append(block) } }

    @inline(never)
    private func postAtGate(isJob: Bool = false, _ letter: @escaping (inout Mail<Loop>) -> Void) -> Bool {
        let (isTaken, isAsleep) = gate!.post(isJob: isJob, letter)
        if isAsleep {
            if notesPosters { state.withLock { noteAwakener(&$0) } }
            waker.wake()
        }
        return isTaken
    }

    @inline(__always)
    private func add(_ add: (inout Mail<Loop>) -> Void) -> Bool {
        if notesMail { waker.mailComes() }
        var isAsleep = false
        let isClosed = state.withLock { state in
            add(&state.mail)
            isAsleep = noteMail(&state)
            return state.isClosed
        }
        if isAsleep { waker.wake() }
        if isClosed { dropMail() }
        return !isClosed
    }

    /// Notes that there is mail; the state `mail` means that the loop has been notified. Called under the lock.
    ///
    /// - Returns: whether the loop was asleep.
    @inline(__always)
    private func noteMail(_ state: inout State) -> Bool {
        assert(gate == nil && !state.mail.isEmpty, "there is no mail to note")
        guard signal.load(ordering: .relaxed) != Signal.mail else { return false }
        guard signal.exchange(Signal.mail, ordering: .acquiringAndReleasing) == Signal.asleep else { return false }
        if notesPosters { noteAwakener(&state) }
        return true
    }

    @inline(never)
    private func noteAwakener(_ state: inout State) {
        state.awakener = .current
        hasAwakener.store(true, ordering: .releasing)
    }

    func takeAwakener() -> ThreadName? {
        guard hasAwakener.exchange(false, ordering: .acquiringAndReleasing) else { return nil }
        return state.withLock { $0.awakener.take() }
    }

    /// Releases mail that came too late. Mail is refused only here, after the lock has been released, because deinits
    /// may do anything; refusing it under the lock cost every post 15 instructions.
    @inline(never)
    private func dropMail() {
        assert(isClosed, "mail was dropped that the loop would take")
        _ = close()
    }

    // MARK: Executors

    /// - Returns: `false` if the loop has ended and the job cannot run.
    func post(_ job: Mail<Loop>.Job) -> Bool {
        if gate != nil { return postAtGate(isJob: true) { $0.jobs.append(job) } }
        var isAsleep = false
        let isTaken = state.withLock { state in
            guard state.takesJobs else { return false }
            state.mail.jobs.append(job)
            isAsleep = noteMail(&state)
            return true
        }
        if isAsleep { waker.wake() }
        return isTaken
    }

    func executor(for modes: RunLoop.Modes, make: () -> any JobExecutor<Loop>) -> any JobExecutor<Loop> {
        state.withLock { state in
            if let executor = state.executors[modes] { return executor }
            let executor = make()
            if state.takesJobs { state.executors[modes] = executor }
            return executor
        }
    }

    /// The executors of a loop that is ending.
    var executors: [any JobExecutor<Loop>] { state.withLock { Array($0.executors.values) } }

    /// Takes the jobs of a loop that is ending.
    func takeJobs() -> FIFO<Mail<Loop>.Job> {
        admitMail()
        var jobs = FIFO<Mail<Loop>.Job>()
        state.withLock { swap(&$0.mail.jobs, &jobs) }
        return jobs
    }

    /// Takes no jobs from now on, if none waits.
    func closeToJobs() -> Bool {
        if gate?.closeIfEmpty(toJobs: true) == false { return false }
        var executors: [RunLoop.Modes: any JobExecutor<Loop>] = [:]
        let isClosed = state.withLock { state in
            guard state.mail.jobs.isEmpty else { return false }
            assert(state.takesJobs, "the mailbox closes to jobs twice")
            state.takesJobs = false
            swap(&state.executors, &executors)
            return true
        }
        for executor in executors.values { executor.end() }
        return isClosed
    }

    // MARK: Looking

    /// Takes the mail and leaves the loop's emptied buffers, with their capacity, in exchange.
    @inline(__always)
    func collect(into mail: inout Mail<Loop>, closing isClosing: Bool) {
        assert(mail.isEmpty, "mail was collected that has not been opened")
        if gate != nil { return collectAdmitted(into: &mail, closing: isClosing) }
        state.withLock { state in
            signal.store(Signal.none, ordering: .releasing)
            // Mail that came after the mailbox was closed was refused, and its sender releases it.
            guard !state.isClosed else { return swap(&state.mail.jobs, &mail.jobs) }
            state.isClosed = isClosing
            swap(&state.mail, &mail)
        }
    }

    @inline(never)
    private func collectAdmitted(into mail: inout Mail<Loop>, closing isClosing: Bool) {
        admitMail(closing: isClosing)
        state.withLock { swap(&$0.mail, &mail) }
    }

    /// Takes the mail whose turn has come from the gate, if there is one.
    private func admitMail(closing isClosing: Bool = false) {
        guard let gate else { return }
        let letters = gate.admit(closing: isClosing)
        state.withLock { state in
            for letter in letters { letter(&state.mail) }
        }
    }

    var isClosed: Bool { gate?.isClosed ?? state.withLock { $0.isClosed } }

    @inline(__always)
    var hasMail: Bool { signal.load(ordering: .acquiring) == Signal.mail && (gate == nil || hasMailAtGate()) }

    // Not inlined: inlined, they cost each pass 26 instructions.
    @inline(never)
    private func hasMailAtGate() -> Bool { gate!.hasMail() }

    /// Notes that the loop is about to sleep. Returns `false` if there is mail to handle first.
    @inline(__always)
    func fallAsleep() -> Bool {
        signal.compareExchange(expected: Signal.none, desired: Signal.asleep, ordering: .acquiringAndReleasing)
            .exchanged || fallsAsleepAgain()
    }

    /// Falls asleep with a gate, or when a handler has left the loop asleep after waiting for it as a host.
    @inline(never)
    private func fallsAsleepAgain() -> Bool {
        gate?.fallAsleep() ?? (signal.load(ordering: .acquiring) == Signal.asleep)
    }

    func wakeUp() {
        _ = signal.compareExchange(expected: Signal.asleep, desired: Signal.none, ordering: .acquiringAndReleasing)
    }

    var isAsleep: Bool { signal.load(ordering: .acquiring) == Signal.asleep || gate?.isAsleep == true }

    /// Closes the mailbox if it is empty, so that no accepted mail is lost.
    func closeIfEmpty() -> Bool {
        if let gate { return gate.closeIfEmpty(toJobs: false) }
        return state.withLock { state in
            state.isClosed = state.mail.isEmpty
            return state.isClosed
        }
    }

    /// Closes the mailbox at the end of the loop.
    ///
    /// - Returns: the last mail without the jobs, which the loop takes by ``takeJobs()``.
    func close() -> Mail<Loop> {
        admitMail(closing: true)
        var last = Mail<Loop>()
        state.withLock { state in
            state.isClosed = true
            swap(&state.mail.blocks, &last.blocks)
            swap(&state.mail.requests, &last.requests)
        }
        return last
    }
}
