internal import RunLoopKit

/// The state machine that makes a connection's decisions: it receives events and returns actions.
///
/// The machine knows numbers of bytes, not bytes, makes no system calls, reads no clock and calls no handlers. After
/// each event, the connection carries out the actions of ``next()`` until none is left.
// Not copyable, because the compiler would copy the entire machine for each access to one of its properties.
struct ConnectionMachine: ~Copyable {
    /// A step for the connection to take now.
    enum Action: Equatable {
        /// Send waiting output.
        case send
        /// Notify the peer of the end of output, if needed.
        case endOutput
        /// Check after a pause whether the connection may close, and discard input until then; see
        /// ``looked(unsent:mayClose:)``.
        case linger
        /// Call ``turnBegins()`` in the next pass, because input must be offered or read even if nothing arrives.
        case offerLater
        /// Call the handler for the peer's end.
        case reportEnd
        /// Call the handler for a full connection.
        case reportFull
        /// Call the handler for drained output.
        case reportDrain
        /// Leave the loop for another.
        case move
        /// Close with ``closeReason``.
        case close
    }

    /// The life of a connection. A state has the data that only it needs.
    private enum State {
        case new, open
        // Indirect, so that each question about an open connection compares a word (decision 130).
        indirect case ending(Ending)
    }

    /// The end of a connection's life here.
    private enum Ending {
        /// Nothing more is read, sent or reported, because the connection leaves for another loop.
        case moving(isStarted: Bool, isDue: Bool)
        /// Writing has failed. Input that has arrived is offered before the connection closes.
        case failing(Connection.CloseReason)
        /// Input is discarded; the connection closes when all output has been sent.
        case finishing(Connection.CloseReason)
        /// The system has all output. The peer has time to accept it and to end its side.
        case lingering(Connection.CloseReason, Looks)
        /// The next action is to close.
        case closing(Connection.CloseReason, resets: Bool)
        case closed(Connection.CloseReason)
    }

    /// The looks at a peer that has still to accept output or to end its side.
    private struct Looks {
        /// True if the next look is to be made after a pause.
        var isDue = false
        /// The smallest number of unsent bytes found by all looks.
        var leastUnsent = Int.max
        /// The number of looks since that minimum.
        var withoutProgress = 0
        /// True if input has arrived since the last look.
        var hasDiscarded = false
    }

    private enum Side { case own, peer }

    /// The input, and its end.
    private enum Input {
        /// The peer may send.
        case flowing(hasCome: Bool)
        /// This side ends the input when the first bytes have come, and reads until then.
        case awaitingFirst(hasCome: Bool)
        /// Nothing more is read, and the owner has still to be notified.
        case ending(by: Side)
        /// Nothing more is read, and the owner has been or is being notified.
        case ended(by: Side)
    }

    /// The user of the input.
    private enum Reader {
        case handler
        /// Tasks take the input, so that none is offered. Reading is on hold if none has requested the received bytes.
        case tasks(isOnHold: Bool)
    }

    /// The stream below, as far as output is concerned.
    private enum Sink {
        /// No bytes can pass through the stream yet.
        case opening
        case accepting
        /// The stream accepts no more for now and will report when it does.
        case blocked
    }

    /// The end of the output.
    private enum OutputEnd {
        case none
        /// The peer is notified of the end when all output has been sent.
        case requested
        case done
    }

    /// The limits that the machine uses, without the reference in `Connection.Limits`, which would be retained.
    private struct Bounds {
        let lowWatermark, highWatermark: Int
        let readsWhileFull: Bool
        let maximumInput, maximumOutput: Int

        init(_ limits: Connection.Limits) {
            // With a low mark above the high one, the connection would alternate between full and not full.
            (lowWatermark, highWatermark) = (min(limits.lowWatermark, limits.highWatermark), limits.highWatermark)
            readsWhileFull = limits.readsWhileFull
            (maximumInput, maximumOutput) = (limits.maximumInput, limits.maximumOutput ?? .max)
        }
    }

    private var bounds: Bounds
    private var state = State.new

    /// The number of handlers on the stack, whose output is sent when the outermost returns.
    private(set) var handlers = 0
    private(set) var isReceiving = false
    private var reader: Reader
    private var pauses = 0
    private var input = Input.flowing(hasCome: false)
    /// The number of received bytes that are unused.
    private(set) var unusedInput = 0
    /// True if unused input must be offered again even if no more arrives.
    private var offersAgain = false
    /// True if a posted turn will offer or read input in the next pass.
    private var isOfferPosted = false

    private var sink = Sink.opening
    private(set) var pendingOutput = 0
    /// True from when the output exceeds the high watermark until it falls to the low one.
    private(set) var isFull = false
    private var outputEnd = OutputEnd.none

    /// The pause between two looks while lingering.
    static let pauseBetweenLooks = Duration.milliseconds(100)
    /// The number of looks without progress, in 30 s, after which a connection closes even if the peer lacks output or
    /// is sending.
    private static let mostLooks = 300

    init(_ limits: Connection.Limits, isForTasks: Bool) {
        bounds = Bounds(limits)
        reader = isForTasks ? .tasks(isOnHold: false) : .handler
    }

    mutating func setLimits(_ limits: Connection.Limits) {
        bounds = Bounds(limits)
    }

    // MARK: Answers

    var isNew: Bool {
        switch state {
        case .new, .ending(.moving(isStarted: false, _)): true
        case .open, .ending: false
        }
    }
    @inline(__always)
    private var isOpen: Bool { if case .open = state { true } else { false } }
    @inline(__always)
    private var isFailing: Bool { if case .ending(.failing) = state { true } else { false } }
    var isFinishing: Bool { if case .ending(.finishing) = state { true } else { false } }
    @inline(__always)
    var isClosed: Bool { if case .ending(.closed) = state { true } else { false } }
    /// True if the next action is to close.
    @inline(__always)
    var mustClose: Bool { if case .ending(.closing) = state { true } else { false } }
    /// True if the connection closes next, and the peer must see a failure instead of an end.
    var resets: Bool { if case .ending(.closing(_, resets: true)) = state { true } else { false } }

    /// The reason for which the connection closes or has closed; `closed` as long as there is none.
    var closeReason: Connection.CloseReason {
        switch state {
        case .ending(.closing(let reason, _)), .ending(.closed(let reason)): reason
        case .new, .open, .ending: .closed
        }
    }

    /// True if tasks take the input, so that none is offered. Changed only while no task uses the connection.
    var isForTasks: Bool {
        get { if case .tasks = reader { true } else { false } }
        set { reader = newValue ? .tasks(isOnHold: false) : .handler }
    }
    /// True if reading is on hold because no task has requested the received bytes.
    var holdsInput: Bool { if case .tasks(isOnHold: true) = reader { true } else { false } }
    private var isPaused: Bool { pauses > 0 || holdsInput }

    /// True if nothing more is read: the peer has ended its side, or this side ends the input.
    @inline(__always)
    private var isInputOver: Bool {
        switch input {
        case .flowing, .awaitingFirst: false
        case .ending, .ended: true
        }
    }
    /// True if the input has ended, and the owner has been or is being notified.
    @inline(__always)
    var hasReportedEnd: Bool { if case .ended = input { true } else { false } }
    /// True if the peer itself has ended its side.
    var hasReadEnd: Bool {
        switch input {
        case .ending(by: .peer), .ended(by: .peer): true
        case .flowing, .awaitingFirst, .ending(by: .own), .ended(by: .own): false
        }
    }
    /// True if the owner has still to be notified of an end of the input.
    @inline(__always)
    private var isEndPending: Bool {
        switch input {
        case .flowing, .ended: false
        case .awaitingFirst, .ending: true
        }
    }

    /// True if input must be read now, to be offered or discarded.
    @inline(__always)
    var wantsInput: Bool { !isInputOver && (isOffering || discardsInput) }

    /// True if input is discarded. Otherwise two peers that both finish would wait for each other to read.
    var discardsInput: Bool {
        switch state {
        case .ending(.finishing), .ending(.lingering): true
        case .new, .open, .ending: false
        }
    }

    /// True if input may be offered now. An end waits until the input before it has been offered.
    private var mayOffer: Bool { isOffering && !hasReportedEnd }

    /// True if a handler that has used a part of its input may use more, even if the peer has ended.
    var mayOfferMore: Bool { mayOffer && (bounds.readsWhileFull || pendingOutput <= bounds.highWatermark) }

    /// True if arriving input is offered.
    @inline(__always)
    private var isOffering: Bool {
        switch state {
        case .open: !isPaused && (!isFull || bounds.readsWhileFull)
        case .ending(.failing): !isPaused
        case .new, .ending: false
        }
    }

    /// The events for which to watch the stream.
    var interest: DescriptorEvents {
        var events: DescriptorEvents = wantsInput && !isReceiving ? .readable : []
        if sink == .blocked { events.insert(.writable) }
        return events
    }

    /// True if the output has ended or ends after the bytes that wait.
    var endsAfterOutput: Bool { outputEnd != .none }

    /// True if bytes written now will be sent.
    var mayWrite: Bool {
        switch state {
        case .new, .open, .ending(.moving): outputEnd == .none
        case .ending: false
        }
    }

    /// True if input that arrived before a failed write would be offered.
    var mayReadAfterFailure: Bool { isOpen && !hasReportedEnd }

    /// True if bytes can be sent directly from the caller's memory, because no earlier output is waiting.
    var mayWriteThrough: Bool {
        pendingOutput == 0 && handlers == 0 && sink == .accepting && isOpen && outputEnd == .none
    }

    /// Returns the next action, which then counts as begun; `nil` if there is none until the next event.
    @inline(__always)
    mutating func next() -> Action? {
        if mustClose { return .close }
        if asksForTurn() { return .offerLater }
        guard handlers == 0 else { return nil }
        switch state {
        case .open: return nextWhileOpen()
        case .new: return pendingOutput > bounds.maximumOutput ? closing(.outputLimit) : nil
        case .ending(let ending): return next(while: ending)
        }
    }

    private mutating func next(while ending: Ending) -> Action? {
        switch ending {
        case .moving(let isStarted, let isDue):
            guard isDue else { return nil }
            state = .ending(.moving(isStarted: isStarted, isDue: false))
            return .move
        case .failing(let reason): return isEndPending && !isEndHeld ? closing(reason) : nil
        case .finishing(let reason):
            if let action = outputAction() { return action }
            guard outputEnd == .done else { return nil }
            assert(pendingOutput == 0, "a connection ends before its output has gone")
            if hasReadEnd { return closing(reason) }
            state = .ending(.lingering(reason, Looks()))
            return .linger
        case .lingering(let reason, var looks):
            guard looks.isDue else { return nil }
            looks.isDue = false
            state = .ending(.lingering(reason, looks))
            return .linger
        case .closing, .closed: return nil
        }
    }

    private mutating func nextWhileOpen() -> Action? {
        if let action = outputAction() ?? passedMark() { return action }
        if isEndPending && !isEndHeld {
            input = .ended(by: hasReadEnd ? .peer : .own)
            return .reportEnd
        }
        return outputEnd == .done && hasReportedEnd ? closing(.ended) : nil
    }

    /// Returns the action for waiting output and its end.
    private mutating func outputAction() -> Action? {
        if sink == .accepting {
            if pendingOutput > 0 { return .send }
            if outputEnd == .requested { return .endOutput }
        }
        return pendingOutput > bounds.maximumOutput ? closing(.outputLimit) : nil
    }

    /// Returns whether unused input, or input of the stream, needs a turn in the next pass.
    @inline(__always)
    private mutating func asksForTurn() -> Bool {
        guard offersAgain || isFailing, mayOffer && !isReceiving && !isOfferPosted else { return false }
        isOfferPosted = offersAgain || !isEndPending
        return isOfferPosted
    }

    /// Returns whether a turn would find input, and otherwise cancels it.
    ///
    /// - Parameter holdsInput: whether the stream has input for which it will report no readiness.
    /// - Returns: `false` if there is none, so that the turn was cancelled.
    mutating func needsTurn(holdsInput: Bool) -> Bool {
        if hasOffer || holdsInput || (isFailing && !isEndPending) { return true }
        (isOfferPosted, offersAgain) = (false, false)
        return false
    }

    /// True if there is unused input to offer.
    private var hasOffer: Bool { unusedInput > 0 && !isForTasks }

    /// True if an end waits until earlier input has been offered.
    private var isEndHeld: Bool {
        if case .awaitingFirst(hasCome: false) = input { return true }
        return hasOffer && (offersAgain || !mayOffer)
    }

    /// Notes the result of a look at the stream while lingering.
    ///
    /// - Parameters:
    ///   - unsent: the number of bytes that the peer's system does not yet have.
    ///   - mayClose: whether closing now loses nothing.
    /// - Returns: whether the peer's system has accepted more since the last look.
    mutating func looked(unsent: Int, mayClose: Bool) -> Bool {
        guard case .ending(.lingering(let reason, var looks)) = state else {
            assert(isClosed, "a connection was looked at that waits for no end")
            return false
        }
        let isProgress = unsent < looks.leastUnsent
        if isProgress { (looks.leastUnsent, looks.withoutProgress) = (unsent, 0) }
        looks.withoutProgress += 1
        // A peer that is still sending would receive a reset, and might read no further.
        let isQuiet = mayClose && !looks.hasDiscarded
        (looks.hasDiscarded, looks.isDue) = (false, true)
        state = .ending(.lingering(reason, looks))
        if isQuiet || looks.withoutProgress > Self.mostLooks { close(reason) }
        return isProgress
    }

    mutating func discarded() {
        assert(discardsInput || isClosed, "input was discarded that somebody wants")
        guard case .ending(.lingering(let reason, var looks)) = state, !looks.hasDiscarded else { return }
        looks.hasDiscarded = true
        state = .ending(.lingering(reason, looks))
    }

    private mutating func closing(_ reason: Connection.CloseReason) -> Action {
        close(reason)
        return .close
    }

    private mutating func passedMark() -> Action? {
        assert(bounds.lowWatermark <= bounds.highWatermark, "a connection is full and not full at the same time")
        if !isFull && pendingOutput > bounds.highWatermark {
            isFull = true
            return .reportFull
        }
        guard isFull && pendingOutput <= bounds.lowWatermark else { return nil }
        (isFull, offersAgain) = (false, true)
        return .reportDrain
    }

    // MARK: Events

    /// Starts the connection, which may have come from another loop with input.
    mutating func start() {
        assert(isNew, "a connection starts twice")
        if case .ending(.moving(_, let isDue)) = state {
            state = .ending(.moving(isStarted: true, isDue: isDue))
        } else {
            state = .open
        }
        offersAgain = true
    }

    mutating func streamOpened() {
        assert(sink == .opening, "a stream opens twice")
        sink = .accepting
    }

    mutating func handlerBegins() {
        handlers += 1
    }

    mutating func handlerEnds() {
        assert(handlers > 0, "a handler ends that has not begun")
        handlers -= 1
    }

    /// Notes that the receive handler is about to be called.
    mutating func receivingBegins() {
        assert(!isReceiving, "input is offered while input is being used")
        if !isForTasks { offersAgain = false }
        isReceiving = true
        handlers += 1
        inputCame()
    }

    /// Notes that the receive handler has left `unused` bytes unused.
    ///
    /// - Parameters:
    ///   - held: the number of further bytes that the program holds.
    ///   - isWhole: whether the handler has seen all of the input, so that the limit applies.
    mutating func receivingEnds(unused: Int, held: Int, isWhole: Bool = true) {
        assert(isReceiving && handlers > 0 && unused >= 0, "no input was being used")
        isReceiving = false
        handlers -= 1
        unusedInput = unused
        if isWhole && unused + held > bounds.maximumInput { close(.inputLimit) }
    }

    /// Notes that `unused` bytes of input are unused, without a call of a handler.
    mutating func inputChanged(to unused: Int) {
        assert(unused >= 0, "a connection has less than no input")
        unusedInput = unused
        if unused > 0 { inputCame() }
    }

    private mutating func inputCame() {
        switch input {
        case .flowing(hasCome: false): input = .flowing(hasCome: true)
        case .awaitingFirst(hasCome: false): input = .awaitingFirst(hasCome: true)
        default: break
        }
    }

    mutating func offerAgain() {
        offersAgain = true
    }

    /// Begins the turn of ``Action/offerLater``.
    ///
    /// - Returns: whether to offer unused input now. If the receive handler is running the loop, another turn follows.
    mutating func turnBegins() -> Bool {
        assert(isOfferPosted || isReceiving || isClosed, "a turn comes that was not asked for")
        isOfferPosted = false
        guard offersAgain && mayOffer && !isReceiving else { return false }
        offersAgain = false
        return hasOffer
    }

    /// Returns whether the turn reads, because the stream has input that it does not report, or may have input from
    /// before a failure.
    ///
    /// - Parameter holdsInput: whether the stream has input for which it will report no readiness.
    func readsInTurn(holdsInput: Bool) -> Bool { (holdsInput || isFailing) && wantsInput && !isReceiving }

    /// Holds reading until a task waits for the input that has arrived.
    mutating func holdInput() {
        assert(isForTasks, "input of a handler is held for a task")
        reader = .tasks(isOnHold: true)
    }

    /// Continues reading for a task that waits for input.
    mutating func releaseInput() {
        guard holdsInput else { return }
        reader = .tasks(isOnHold: false)
        if !isPaused { offersAgain = true }
    }

    /// Notes that the stream has no input for now.
    mutating func inputExhausted() {
        if isFailing { input = .ending(by: .peer) }
    }

    mutating func peerEnded() {
        guard !isInputOver else { return }
        switch state {
        case .new, .open, .ending(.moving), .ending(.failing): input = .ending(by: .peer)
        case .ending(.finishing): input = .ended(by: .peer)
        case .ending(.lingering(let reason, _)):
            input = .ended(by: .peer)
            close(reason)
        case .ending(.closing), .ending(.closed): break
        }
    }

    /// Ends the input of an open connection on this side: the end is reported to the owner behind the bytes that have
    /// arrived.
    ///
    /// - Parameter awaitsFirst: whether a connection to which nothing has come yet is read until something has.
    mutating func endInput(awaitsFirst: Bool) {
        guard isOpen, !isInputOver else { return }
        guard outputEnd == .none else { return finish(.closed) }
        if !awaitsFirst {
            input = .ending(by: .own)
        } else if case .flowing(let hasCome) = input {
            input = .awaitingFirst(hasCome: hasCome)
        }
    }

    /// True if something may be read now, on the initiative of this side.
    var mayRead: Bool { sink != .opening && wantsInput && !isReceiving && !isOfferPosted }

    /// Notes that the owner has been notified of the end.
    ///
    /// - Parameter isAnswered: whether a handler or a task decides when the connection closes.
    mutating func endReported(isAnswered: Bool) {
        assert(hasReportedEnd, "an end is reported that has not come")
        guard isAnswered else { return finish(hasReadEnd ? .ended : .closed) }
        // Nothing is left to decide when this side has ended both. The peer may still send: closing right behind the
        // output could discard it.
        if !hasReadEnd && outputEnd != .none { finish(.ended) }
    }

    mutating func inputFailed(_ reason: Connection.CloseReason) {
        if case .ending(.failing(let first)) = state { close(first) } else { close(reason) }
    }

    mutating func outputChanged(to pending: Int) {
        assert(pending >= 0, "a connection has less than no output")
        pendingOutput = pending
    }

    /// Notes that the stream accepts no more for now.
    mutating func block() {
        assert(sink != .opening, "output is blocked that cannot have been sent")
        sink = .blocked
    }

    /// Notes that the stream accepts more.
    mutating func unblock() {
        if sink == .blocked { sink = .accepting }
    }

    /// Notes that the peer has been notified of the end of output.
    mutating func outputEnded() {
        assert(outputEnd == .requested && pendingOutput == 0, "the output ends twice, or before it has gone")
        outputEnd = .done
    }

    mutating func pause() {
        pauses += 1
    }

    /// - Returns: whether there was a pause to undo.
    mutating func resume() -> Bool {
        guard pauses > 0 else { return false }
        pauses -= 1
        if !isPaused { offersAgain = true }
        return true
    }

    mutating func finishWriting() {
        // The peer may still send: closing right behind the output could discard it.
        if isOpen, case .ended(by: .own) = input { return finish(.closed) }
        endAfterOutput()
    }

    private mutating func endAfterOutput() {
        if outputEnd == .none { outputEnd = .requested }
    }

    mutating func finish(_ reason: Connection.CloseReason) {
        switch state {
        case .new: close(reason)
        case .open:
            state = .ending(.finishing(reason))
            // The peer's end is awaited even if this side has ended the input.
            input = hasReadEnd ? .ended(by: .peer) : .flowing(hasCome: true)
            endAfterOutput()
        case .ending(.failing(let first)): close(first)
        case .ending: break
        }
    }

    /// Closes a finishing connection that need not linger.
    mutating func finished() {
        guard case .ending(.finishing(let reason)) = state else {
            return assertionFailure("a connection has finished that was not finishing")
        }
        close(reason)
    }

    /// Requests a move to another loop, which happens when no handler is on the stack.
    ///
    /// - Returns: whether the connection moves; `false` if it is already ending.
    mutating func move() -> Bool {
        switch state {
        case .new, .open, .ending(.moving): state = .ending(.moving(isStarted: !isNew, isDue: true))
        case .ending: return false
        }
        return true
    }

    mutating func timeOut(_ reason: Connection.CloseReason) {
        switch state {
        case .ending(.failing(let first)), .ending(.lingering(let first, _)): close(first)
        case .new, .open, .ending: close(reason)
        }
    }

    /// Notes that writing has failed. The connection first offers input that has arrived, and then closes.
    ///
    /// - Parameter keepsInput: whether input was found after the failure; see ``mayReadAfterFailure``.
    /// - Returns: whether there is input to offer.
    mutating func outputFailed(_ reason: Connection.CloseReason, keepsInput: Bool) -> Bool {
        guard mayReadAfterFailure, keepsInput || (hasOffer && isEndHeld) else {
            close(reason)
            return false
        }
        state = .ending(.failing(reason))
        (pendingOutput, offersAgain) = (0, true)
        unblock()
        return true
    }

    /// Makes the connection close next with a reset.
    mutating func reset() {
        close(.closed, resets: true)
    }

    /// Makes the connection close next. The first reason counts.
    mutating func close(_ reason: Connection.CloseReason, resets: Bool = false) {
        if !mustClose && !isClosed { state = .ending(.closing(reason, resets: resets)) }
    }

    mutating func closed() {
        assert(!isClosed, "a connection closes twice")
        state = .ending(.closed(closeReason))
    }
}
