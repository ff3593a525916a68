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

    private enum State {
        case new, open
        /// Writing has failed. Input that has arrived is offered before the connection closes.
        case failing
        /// Input is discarded; the connection closes when all output has been sent.
        case finishing
        /// The system has all output. The peer has time to accept it and to end its side.
        case lingering
        case closed
    }

    // The limits that the machine uses, copied one by one, because `Limits` contains a reference, which would be
    // retained.
    private var (lowWatermark, highWatermark) = (0, 0)
    private var readsWhileFull = false
    private var (maximumInput, maximumOutput) = (0, 0)
    /// True if tasks take the input, so that none is offered. Set before the start.
    var isForTasks: Bool
    /// An end of the input that the owner has not been notified of yet.
    private enum PendingEnd {
        case none
        /// This side ends the input when the first bytes have come, and reads until then.
        case afterFirstInput
        /// This side has ended the input: the peer may still send, and is not read.
        case own
        case peers
    }

    private var state = State.new
    /// True if bytes can pass through the stream.
    private var isStreamOpen = false
    private(set) var finishReason = Connection.CloseReason.closed
    /// True if the next action is to close.
    private(set) var mustClose = false
    private(set) var closeReason = Connection.CloseReason.closed

    /// True if the peer must see a failure instead of an end.
    private(set) var resets = false

    /// True if the connection is moving to another loop, so that nothing more is read, sent or reported here.
    private var isMoving = false
    private var saysMove = false

    /// The number of handlers on the stack, whose output is sent when the outermost returns.
    private(set) var handlers = 0
    private(set) var isReceiving = false
    private var pauses = 0
    /// True if reading is paused because no task has requested the received bytes.
    private(set) var holdsInput = false
    /// True if the peer has ended its side, and the owner has been or is being notified.
    private(set) var hasPeerEnded = false

    /// The number of received bytes that are unused.
    private(set) var unusedInput = 0
    /// True if unused input must be offered again even if no more arrives.
    private var offersAgain = false
    /// True if a posted turn will offer or read input in the next pass.
    private var isOfferPosted = false
    /// The end that is reported when earlier input has been offered.
    private var pendingEnd = PendingEnd.none
    /// True if this side made the end that was reported.
    private var hasEndedInput = false
    /// True if any input has come since the start.
    private var hasReceived = false

    private var saysLinger = false
    /// The smallest number of unsent bytes found by all looks while lingering.
    private var leastUnsent = Int.max
    /// The number of looks since that minimum.
    private var looksWithoutProgress = 0
    /// True if input has arrived since the last look.
    private var hasDiscarded = false

    private(set) var pendingOutput = 0
    /// True if the stream accepts no more for now and will report when it does.
    private var isBlocked = false
    /// True from when the output exceeds the high watermark until it falls to the low one.
    private(set) var isFull = false
    private(set) var endsAfterOutput = false
    private var hasEndedOutput = false

    /// The pause between two looks while lingering.
    static let pauseBetweenLooks = Duration.milliseconds(100)
    /// The number of looks without progress, in 30 s, after which a connection closes even if the peer lacks output or
    /// is sending.
    private static let mostLooks = 300

    init(_ limits: Connection.Limits, isForTasks: Bool) {
        self.isForTasks = isForTasks
        setLimits(limits)
    }

    mutating func setLimits(_ limits: Connection.Limits) {
        // With a low mark above the high one, the connection would alternate between full and not full.
        (lowWatermark, highWatermark) = (min(limits.lowWatermark, limits.highWatermark), limits.highWatermark)
        readsWhileFull = limits.readsWhileFull
        (maximumInput, maximumOutput) = (limits.maximumInput, limits.maximumOutput ?? .max)
    }

    // MARK: Answers

    var isNew: Bool { state == .new }
    var isClosed: Bool { state == .closed }
    var isFinishing: Bool { state == .finishing }
    /// True if nothing more is read: the peer has ended its side, or this side ends the input.
    private var isInputOver: Bool {
        if hasPeerEnded { return true }
        return switch pendingEnd {
        case .none, .afterFirstInput: false
        case .own, .peers: true
        }
    }
    /// True if the peer itself has ended its side.
    var hasReadEnd: Bool { pendingEnd == .peers || hasPeerEnded && !hasEndedInput }

    /// True if input must be read now, to be offered or discarded.
    @inline(__always)
    var wantsInput: Bool { !isInputOver && (isOffering || discardsInput) }

    /// True if input is discarded. Otherwise two peers that both finish would wait for each other to read.
    var discardsInput: Bool { state == .finishing || state == .lingering }

    /// True if input may be offered now. An end waits until the input before it has been offered.
    private var mayOffer: Bool { isOffering && !hasPeerEnded }

    /// True if a handler that has used a part of its input may use more, even if the peer has ended.
    var mayOfferMore: Bool { mayOffer && (readsWhileFull || pendingOutput <= highWatermark) }

    /// True if arriving input is offered.
    @inline(__always)
    private var isOffering: Bool {
        switch state {
        case .open: pauses == 0 && !isMoving && (!isFull || readsWhileFull)
        case .failing: pauses == 0
        case .new, .finishing, .lingering, .closed: false
        }
    }

    /// The events for which to watch the stream.
    var interest: DescriptorEvents {
        var events: DescriptorEvents = wantsInput && !isReceiving ? .readable : []
        if isBlocked { events.insert(.writable) }
        return events
    }

    /// True if bytes written now will be sent.
    var mayWrite: Bool { (state == .new || state == .open) && !endsAfterOutput }

    /// True if input that arrived before a failed write would be offered.
    var mayReadAfterFailure: Bool {
        state == .open && !mustClose && !isMoving && !hasPeerEnded
    }

    /// True if bytes can be sent directly from the caller's memory, because no earlier output is waiting.
    var mayWriteThrough: Bool {
        pendingOutput == 0 && handlers == 0 && isStreamOpen && state == .open && !isBlocked && !endsAfterOutput
    }

    /// Returns the next action, which then counts as begun; `nil` if there is none until the next event.
    @inline(__always)
    mutating func next() -> Action? {
        guard state != .closed else { return nil }
        if mustClose { return .close }
        if asksForTurn() { return .offerLater }
        guard handlers == 0 else { return nil }
        if isMoving {
            defer { saysMove = false }
            return saysMove ? .move : nil
        }
        if state == .failing { return pendingEnd != .none && !isEndHeld ? ending(closeReason) : nil }
        if isStreamOpen, state != .lingering, !isBlocked {
            if pendingOutput > 0 { return .send }
            if !hasEndedOutput && (state == .finishing || endsAfterOutput) { return .endOutput }
        }
        if pendingOutput > maximumOutput { return ending(.outputLimit) }
        if state == .open {
            if let mark = passedMark() { return mark }
            if pendingEnd != .none && !isEndHeld {
                hasEndedInput = pendingEnd != .peers
                (pendingEnd, hasPeerEnded) = (.none, true)
                return .reportEnd
            }
        }
        if saysLinger {
            saysLinger = false
            return .linger
        }
        return hasEndedOutput && state != .lingering ? afterOutput() : nil
    }

    /// Returns whether unused input, or input of the stream, needs a turn in the next pass.
    @inline(__always)
    private mutating func asksForTurn() -> Bool {
        guard offersAgain || state == .failing, mayOffer && !isReceiving && !isOfferPosted else { return false }
        isOfferPosted = offersAgain || pendingEnd == .none
        return isOfferPosted
    }

    /// Returns whether a turn would find input, and otherwise cancels it.
    ///
    /// - Parameter holdsInput: whether the stream has input for which it will report no readiness.
    /// - Returns: `false` if there is none, so that the turn was cancelled.
    mutating func needsTurn(holdsInput: Bool) -> Bool {
        if hasOffer || holdsInput || (state == .failing && pendingEnd == .none) { return true }
        (isOfferPosted, offersAgain) = (false, false)
        return false
    }

    /// True if there is unused input to offer.
    private var hasOffer: Bool { unusedInput > 0 && !isForTasks }

    /// True if an end waits until earlier input has been offered.
    private var isEndHeld: Bool {
        if pendingEnd == .afterFirstInput && !hasReceived { return true }
        return hasOffer && (offersAgain || !mayOffer)
    }

    /// Returns the action after the stream has accepted all output and its end.
    private mutating func afterOutput() -> Action? {
        assert(pendingOutput == 0 && handlers == 0, "a connection ends before its output has gone, or in a handler")
        if state == .open { return hasPeerEnded ? ending(.ended) : nil }
        if hasPeerEnded { return ending(finishReason) }
        state = .lingering
        return .linger
    }

    /// Notes the result of a look at the stream while lingering.
    ///
    /// - Parameters:
    ///   - unsent: the number of bytes that the peer's system does not yet have.
    ///   - mayClose: whether closing now loses nothing.
    /// - Returns: whether the peer's system has accepted more since the last look.
    mutating func looked(unsent: Int, mayClose: Bool) -> Bool {
        assert(state == .lingering || isClosed, "a connection was looked at that waits for no end")
        let isProgress = unsent < leastUnsent
        if isProgress { (leastUnsent, looksWithoutProgress) = (unsent, 0) }
        looksWithoutProgress += 1
        // A peer that is still sending would receive a reset, and might read no further.
        let isQuiet = mayClose && !hasDiscarded
        hasDiscarded = false
        if isQuiet || looksWithoutProgress > Self.mostLooks { close(finishReason) } else { saysLinger = true }
        return isProgress
    }

    mutating func discarded() {
        assert(discardsInput || isClosed, "input was discarded that somebody wants")
        hasDiscarded = true
    }

    private mutating func ending(_ reason: Connection.CloseReason) -> Action {
        close(reason)
        return .close
    }

    private mutating func passedMark() -> Action? {
        assert(lowWatermark <= highWatermark, "a connection is full and not full at the same time")
        if !isFull && pendingOutput > highWatermark {
            isFull = true
            return .reportFull
        }
        guard isFull && pendingOutput <= lowWatermark else { return nil }
        (isFull, offersAgain) = (false, true)
        return .reportDrain
    }

    // MARK: Events

    /// Starts the connection, which may have come from another loop with input.
    mutating func start() {
        assert(state == .new, "a connection starts twice")
        (state, offersAgain) = (.open, true)
    }

    mutating func streamOpened() {
        isStreamOpen = true
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
        (isReceiving, hasReceived) = (true, true)
        handlers += 1
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
        if isWhole && unused + held > maximumInput { close(.inputLimit) }
    }

    /// Notes that `unused` bytes of input are unused, without a call of a handler.
    mutating func inputChanged(to unused: Int) {
        assert(unused >= 0, "a connection has less than no input")
        unusedInput = unused
        if unused > 0 { hasReceived = true }
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
    func readsInTurn(holdsInput: Bool) -> Bool { (holdsInput || state == .failing) && wantsInput && !isReceiving }

    /// Pauses reading until a task waits for the input that has arrived.
    mutating func holdInput() {
        guard !holdsInput else { return }
        holdsInput = true
        pause()
    }

    /// Resumes reading for a task that waits for input.
    mutating func releaseInput() {
        guard holdsInput else { return }
        holdsInput = false
        _ = resume()
    }

    /// Notes that the stream has no input for now.
    mutating func inputExhausted() {
        if state == .failing { pendingEnd = .peers }
    }

    mutating func peerEnded() {
        guard !isInputOver else { return }
        switch state {
        case .new, .open, .failing: pendingEnd = .peers
        case .finishing, .closed: hasPeerEnded = true
        case .lingering:
            hasPeerEnded = true
            close(finishReason)
        }
    }

    /// Ends the input of an open connection on this side: the end is reported to the owner behind the bytes that have
    /// arrived.
    ///
    /// - Parameter awaitsFirst: whether a connection to which nothing has come yet is read until something has.
    mutating func endInput(awaitsFirst: Bool) {
        guard state == .open, !isMoving, !isInputOver else { return }
        guard !endsAfterOutput else { return finish(.closed) }
        pendingEnd = awaitsFirst ? .afterFirstInput : .own
    }

    /// True if something may be read now, on the initiative of this side.
    var mayRead: Bool { isStreamOpen && wantsInput && !isReceiving && !isOfferPosted }

    /// Notes that the owner has been notified of the end.
    ///
    /// - Parameter isAnswered: whether a handler or a task decides when the connection closes.
    mutating func endReported(isAnswered: Bool) {
        assert(hasPeerEnded, "an end is reported that has not come")
        if !isAnswered { finish(hasEndedInput ? .closed : .ended) }
    }

    mutating func inputFailed(_ reason: Connection.CloseReason) {
        close(state == .failing ? closeReason : reason)
    }

    mutating func outputChanged(to pending: Int) {
        assert(pending >= 0, "a connection has less than no output")
        pendingOutput = pending
    }

    /// Notes that the stream accepts no more for now.
    mutating func block() {
        assert(isStreamOpen, "output is blocked that cannot have been sent")
        isBlocked = true
    }

    /// Notes that the stream accepts more.
    mutating func unblock() {
        isBlocked = false
    }

    /// Notes that the peer has been notified of the end of output.
    mutating func outputEnded() {
        assert(!hasEndedOutput && pendingOutput == 0, "the output ends twice, or before it has gone")
        hasEndedOutput = true
    }

    mutating func pause() {
        pauses += 1
    }

    /// - Returns: whether there was a pause to undo.
    mutating func resume() -> Bool {
        guard pauses > 0 else { return false }
        pauses -= 1
        if pauses == 0 { offersAgain = true }
        return true
    }

    mutating func finishWriting() {
        // The peer may still send: closing right behind the output could discard it.
        if hasEndedInput && state == .open { finish(.closed) } else { endsAfterOutput = true }
    }

    mutating func finish(_ reason: Connection.CloseReason) {
        guard !isMoving else { return }
        switch state {
        case .new: close(reason)
        case .open:
            (state, finishReason) = (.finishing, reason)
            hasPeerEnded = hasReadEnd
            (pendingEnd, hasEndedInput) = (.none, false)
        case .failing: close(closeReason)
        case .finishing, .lingering, .closed: break
        }
    }

    /// Requests a move to another loop, which happens when no handler is on the stack.
    ///
    /// - Returns: whether the connection moves; `false` if it is already ending.
    mutating func move() -> Bool {
        guard state == .new || state == .open, !mustClose else { return false }
        (isMoving, saysMove) = (true, true)
        return true
    }

    mutating func timeOut(_ reason: Connection.CloseReason) {
        close(state == .lingering ? finishReason : state == .failing ? closeReason : reason)
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
        (state, closeReason) = (.failing, reason)
        (pendingOutput, isBlocked, offersAgain) = (0, false, true)
        return true
    }

    /// Makes the connection close next with a reset.
    mutating func reset() {
        if !mustClose { resets = true }
        close(.closed)
    }

    /// Makes the connection close next. The first reason counts.
    mutating func close(_ reason: Connection.CloseReason) {
        guard !mustClose else { return }
        (mustClose, closeReason) = (true, reason)
    }

    mutating func closed() {
        assert(state != .closed, "a connection closes twice")
        state = .closed
    }
}
