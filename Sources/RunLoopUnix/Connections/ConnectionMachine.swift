internal import RunLoopKit

/// The decisions of a connection: a state machine that receives events and answers with actions.
///
/// It knows amounts and not bytes, makes no system call, reads no clock and calls nobody. After each event the connection
/// carries out the actions of ``next()`` until there is none left.
// Not copyable: otherwise the compiler copies the whole of it for each question to a connection's machine.
struct ConnectionMachine: ~Copyable {
    /// A step that the connection is to take now.
    enum Action: Equatable {
        /// Send waiting output.
        case send
        /// Tell the peer that this was all, if it has to be told.
        case endOutput
        /// Look after a pause whether the connection may close, and discard input until then; see
        /// ``looked(unsent:mayClose:)``.
        case linger
        /// Have ``turnBegins()`` called in the next pass, because input is to be offered or read though nothing may arrive.
        case offerLater
        /// Call the handler for the peer's end.
        case reportEnd
        /// Call the handler for too much that waits.
        case reportFull
        /// Call the handler for little enough that waits.
        case reportDrain
        /// Leave the loop, for another one.
        case move
        /// Close, for ``closeReason``.
        case close
    }

    private enum State {
        case new, open
        /// Writing has failed. Input that has arrived is still offered; then the connection closes.
        case failing
        /// Input is discarded; the connection closes when everything is sent.
        case finishing
        /// The system has all output. The peer gets time to take it and to end its side.
        case lingering
        case closed
    }

    // The limits that it asks for, one by one: the whole of them has a reference in it, which would be counted.
    private var (lowWatermark, highWatermark) = (0, 0)
    private var readsWhileFull = false
    private var (maximumInput, maximumOutput) = (0, 0)
    /// Tasks take the input, so that none is offered.
    private let isForTasks: Bool
    private var state = State.new
    /// Whether bytes can go through the stream.
    private var isStreamOpen = false
    private(set) var finishReason = Connection.CloseReason.closed
    /// Whether it closes next.
    private(set) var mustClose = false
    private(set) var closeReason = Connection.CloseReason.closed

    /// Whether the peer is to see a failure in place of an end.
    private(set) var resets = false

    /// It goes to another loop: nothing is read, sent or reported here any more.
    private var isMoving = false
    private var saysMove = false

    /// The number of handlers on the stack. Their output is sent when the outermost returns.
    private(set) var handlers = 0
    private(set) var isReceiving = false
    private var pauses = 0
    /// Whether reading is paused because no task has requested the received bytes.
    private(set) var holdsInput = false
    /// Whether the peer has ended its side, and the owner knows or is about to.
    private(set) var hasPeerEnded = false

    /// The number of bytes that have arrived and are unused.
    private(set) var unusedInput = 0
    /// Unused input is to be offered again, though no more may arrive.
    private var offersAgain = false
    /// The next pass will offer it.
    private var isOfferPosted = false
    /// The peer has ended, and input that arrived before is still to be offered.
    private var isEndWaiting = false

    private var saysLinger = false
    /// The least output that the peer's system did not have yet, of all looks while lingering.
    private var leastUnsent = Int.max
    /// The number of looks since then.
    private var looksWithoutProgress = 0
    /// Whether input has arrived since the last look.
    private var hasDiscarded = false

    private(set) var pendingOutput = 0
    /// The stream has taken all it could, and will say when it takes more.
    private var isBlocked = false
    /// More waits than the high watermark; until it is no more than the low one.
    private(set) var isFull = false
    private(set) var endsAfterOutput = false
    private var hasEndedOutput = false

    /// The pause between two looks while lingering.
    static let pauseBetweenLooks = Duration.milliseconds(100)
    /// The number of looks without progress after which a connection closes although the peer lacks output or sends: 30 s.
    private static let mostLooks = 300

    init(_ limits: Connection.Limits, isForTasks: Bool) {
        self.isForTasks = isForTasks
        setLimits(limits)
    }

    mutating func setLimits(_ limits: Connection.Limits) {
        // A low mark above the high one would make the connection full and not full by turns.
        (lowWatermark, highWatermark) = (min(limits.lowWatermark, limits.highWatermark), limits.highWatermark)
        readsWhileFull = limits.readsWhileFull
        (maximumInput, maximumOutput) = (limits.maximumInput, limits.maximumOutput ?? .max)
    }

    // MARK: Answers

    var isNew: Bool { state == .new }
    var isClosed: Bool { state == .closed }
    var isFinishing: Bool { state == .finishing }
    /// Whether the peer has ended its side.
    var hasReadEnd: Bool { hasPeerEnded || isEndWaiting }

    /// Whether input is to be read now: to be offered or to be discarded.
    @inline(__always)
    var wantsInput: Bool { !hasReadEnd && (isOffering || discardsInput) }

    /// Whether input is discarded. Two peers that both finish would otherwise wait for each other to read.
    var discardsInput: Bool { state == .finishing || state == .lingering }

    /// Whether input may be offered now. An end waits until the input before it has been offered.
    private var mayOffer: Bool { isOffering && !hasPeerEnded }

    /// Whether a handler that has used a part of its input may use more. The peer may have ended.
    var mayOfferMore: Bool { mayOffer && (readsWhileFull || pendingOutput <= highWatermark) }

    /// Whether input is offered when there is some.
    @inline(__always)
    private var isOffering: Bool {
        switch state {
        case .open: pauses == 0 && !isMoving && (!isFull || readsWhileFull)
        case .failing: pauses == 0
        case .new, .finishing, .lingering, .closed: false
        }
    }

    /// The events for which the stream is to be watched.
    var interest: DescriptorEvents {
        var events: DescriptorEvents = wantsInput && !isReceiving ? .readable : []
        if isBlocked { events.insert(.writable) }
        return events
    }

    /// Whether anything that is written now will be sent.
    var mayWrite: Bool { (state == .new || state == .open) && !endsAfterOutput }

    /// Whether input that arrived before writing failed would be offered.
    var mayReadAfterFailure: Bool {
        state == .open && !mustClose && !isMoving && !hasPeerEnded
    }

    /// Whether something can be sent from where it lies: nothing waits that has to go before it.
    var mayWriteThrough: Bool {
        pendingOutput == 0 && handlers == 0 && isStreamOpen && state == .open && !isBlocked && !endsAfterOutput
    }

    /// The next thing to do; `nil` if there is nothing until something happens. The action is taken as begun.
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
        if state == .failing { return isEndWaiting && !isEndHeld ? ending(closeReason) : nil }
        if isStreamOpen, state != .lingering, !isBlocked {
            if pendingOutput > 0 { return .send }
            if !hasEndedOutput && (state == .finishing || endsAfterOutput) { return .endOutput }
        }
        if pendingOutput > maximumOutput { return ending(.outputLimit) }
        if state == .open {
            if let mark = passedMark() { return mark }
            if isEndWaiting && !isEndHeld {
                (isEndWaiting, hasPeerEnded) = (false, true)
                return .reportEnd
            }
        }
        if saysLinger {
            saysLinger = false
            return .linger
        }
        return hasEndedOutput && state != .lingering ? afterOutput() : nil
    }

    /// Whether unused input, or input of the stream, needs a turn of its own.
    @inline(__always)
    private mutating func asksForTurn() -> Bool {
        guard offersAgain || state == .failing, mayOffer && !isReceiving && !isOfferPosted else { return false }
        isOfferPosted = offersAgain || !isEndWaiting
        return isOfferPosted
    }

    /// Whether a turn would find something.
    ///
    /// - Parameter holdsInput: whether the stream has input that no readiness will be reported for.
    /// - Returns: `false` if there is nothing, and the turn was called off.
    mutating func needsTurn(holdsInput: Bool) -> Bool {
        if hasOffer || holdsInput || (state == .failing && !isEndWaiting) { return true }
        (isOfferPosted, offersAgain) = (false, false)
        return false
    }

    /// Whether unused input can be offered.
    private var hasOffer: Bool { unusedInput > 0 && !isForTasks }

    /// Whether an end waits until input that arrived before it has been offered.
    private var isEndHeld: Bool { hasOffer && (offersAgain || !mayOffer) }

    /// The stream has taken all output, and the peer will be told of its end.
    private mutating func afterOutput() -> Action? {
        if state == .open { return hasPeerEnded ? ending(.ended) : nil }
        if hasPeerEnded { return ending(finishReason) }
        state = .lingering
        return .linger
    }

    /// The connection has looked at its stream while lingering.
    ///
    /// - Parameters:
    ///   - unsent: the number of bytes that the peer's system does not have yet.
    ///   - mayClose: whether closing now loses nothing.
    /// - Returns: whether the peer's system has taken more since the last look.
    mutating func looked(unsent: Int, mayClose: Bool) -> Bool {
        let isProgress = unsent < leastUnsent
        if isProgress { (leastUnsent, looksWithoutProgress) = (unsent, 0) }
        looksWithoutProgress += 1
        // A peer that still sends would be answered by a reset, and might read no further.
        let isQuiet = mayClose && !hasDiscarded
        hasDiscarded = false
        if isQuiet || looksWithoutProgress > Self.mostLooks { close(finishReason) } else { saysLinger = true }
        return isProgress
    }

    mutating func discarded() {
        hasDiscarded = true
    }

    private mutating func ending(_ reason: Connection.CloseReason) -> Action {
        close(reason)
        return .close
    }

    private mutating func passedMark() -> Action? {
        if !isFull && pendingOutput > highWatermark {
            isFull = true
            return .reportFull
        }
        guard isFull && pendingOutput <= lowWatermark else { return nil }
        (isFull, offersAgain) = (false, true)
        return .reportDrain
    }

    // MARK: Events

    /// The connection begins. It may have come from another loop, with input.
    mutating func start() {
        (state, offersAgain) = (.open, true)
    }

    mutating func streamOpened() {
        isStreamOpen = true
    }

    mutating func handlerBegins() {
        handlers += 1
    }

    mutating func handlerEnds() {
        handlers -= 1
    }

    /// The receive handler is about to be called with input.
    mutating func receivingBegins() {
        if !isForTasks { offersAgain = false }
        isReceiving = true
        handlers += 1
    }

    /// The receive handler has left so many bytes unused.
    ///
    /// - Parameters:
    ///   - held: the number of bytes that the program holds besides.
    ///   - isWhole: whether it has seen all of the input, so that the bytes are limited.
    mutating func receivingEnds(unused: Int, held: Int, isWhole: Bool = true) {
        isReceiving = false
        handlers -= 1
        unusedInput = unused
        if isWhole && unused + held > maximumInput { close(.inputLimit) }
    }

    /// So many bytes of input are unused, though no handler was called.
    mutating func inputChanged(to unused: Int) {
        unusedInput = unused
    }

    mutating func offerAgain() {
        offersAgain = true
    }

    /// The turn of ``Action/offerLater`` has come.
    ///
    /// - Returns: whether unused input is to be offered now. If the receive handler runs the loop, another turn follows it.
    mutating func turnBegins() -> Bool {
        isOfferPosted = false
        guard offersAgain && mayOffer && !isReceiving else { return false }
        offersAgain = false
        return hasOffer
    }

    /// Whether the turn reads: the stream has input of which it does not tell, or may have some from before a failure.
    ///
    /// - Parameter holdsInput: whether the stream has input that no readiness will be reported for.
    func readsInTurn(holdsInput: Bool) -> Bool { (holdsInput || state == .failing) && wantsInput && !isReceiving }

    /// Input has arrived that no task waits for: reading pauses until one does.
    mutating func holdInput() {
        guard !holdsInput else { return }
        holdsInput = true
        pause()
    }

    /// A task waits for input.
    mutating func releaseInput() {
        guard holdsInput else { return }
        holdsInput = false
        _ = resume()
    }

    /// The stream has no input for now.
    mutating func inputExhausted() {
        if state == .failing { isEndWaiting = true }
    }

    mutating func peerEnded() {
        guard !hasReadEnd else { return }
        switch state {
        case .new, .open, .failing: isEndWaiting = true
        case .finishing, .closed: hasPeerEnded = true
        case .lingering:
            hasPeerEnded = true
            close(finishReason)
        }
    }

    /// The owner knows of the peer's end.
    ///
    /// - Parameter isAnswered: whether a handler or a task decides when the connection closes.
    mutating func endReported(isAnswered: Bool) {
        if !isAnswered { finish(.ended) }
    }

    mutating func inputFailed(_ reason: Connection.CloseReason) {
        close(state == .failing ? closeReason : reason)
    }

    mutating func outputChanged(to pending: Int) {
        pendingOutput = pending
    }

    /// The stream takes no more for now.
    mutating func block() {
        isBlocked = true
    }

    /// The stream takes more.
    mutating func unblock() {
        isBlocked = false
    }

    /// The peer knows that nothing more is sent.
    mutating func outputEnded() {
        hasEndedOutput = true
    }

    mutating func pause() {
        pauses += 1
    }

    /// - Returns: whether there was a pause to take back.
    mutating func resume() -> Bool {
        guard pauses > 0 else { return false }
        pauses -= 1
        if pauses == 0 { offersAgain = true }
        return true
    }

    mutating func finishWriting() {
        endsAfterOutput = true
    }

    mutating func finish(_ reason: Connection.CloseReason) {
        guard !isMoving else { return }
        switch state {
        case .new: close(reason)
        case .open:
            (state, finishReason) = (.finishing, reason)
            if isEndWaiting { (isEndWaiting, hasPeerEnded) = (false, true) }
        case .failing: close(closeReason)
        case .finishing, .lingering, .closed: break
        }
    }

    /// Has the connection go to another loop, now or, if it could not before, when no handler is on the stack.
    ///
    /// - Returns: whether it does; not if it ends already.
    mutating func move() -> Bool {
        guard state == .new || state == .open, !mustClose else { return false }
        (isMoving, saysMove) = (true, true)
        return true
    }

    mutating func timeOut(_ reason: Connection.CloseReason) {
        close(state == .lingering ? finishReason : state == .failing ? closeReason : reason)
    }

    /// Writing has failed. The connection closes, but first offers input that has arrived.
    ///
    /// - Parameter keepsInput: whether input was found after the failure; see ``mayReadAfterFailure``.
    /// - Returns: whether there is input to offer.
    mutating func outputFailed(_ reason: Connection.CloseReason, keepsInput: Bool) -> Bool {
        guard mayReadAfterFailure, keepsInput || isEndHeld else {
            close(reason)
            return false
        }
        (state, closeReason) = (.failing, reason)
        (pendingOutput, isBlocked, offersAgain) = (0, false, true)
        return true
    }

    /// Has the connection closed next, in a way that the peer takes for a failure.
    mutating func reset() {
        if !mustClose { resets = true }
        close(.closed)
    }

    /// Has the connection closed next. The first reason counts.
    mutating func close(_ reason: Connection.CloseReason) {
        guard !mustClose else { return }
        (mustClose, closeReason) = (true, reason)
    }

    mutating func closed() {
        state = .closed
    }
}
