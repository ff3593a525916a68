internal import RunLoopKit

/// What a connection does when: a machine that is told what has happened, and says what comes next.
///
/// It knows amounts and not bytes, makes no system call, reads no clock and calls nobody. ``next()`` is asked after every
/// event until it has nothing more to say.
// Not copyable: otherwise the compiler copies the whole of it for each question to a connection's machine.
struct ConnectionMachine: ~Copyable {
    /// What the connection is to do now.
    enum Action: Equatable {
        /// Send what waits.
        case send
        /// Tell the peer that this was all, if it has to be told.
        case endOutput
        /// Discard what comes until the peer has ended its side too, but not for long.
        case linger
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
        /// Nothing is read any more; the connection closes when everything is sent.
        case finishing
        /// Everything is sent, and the peer has a moment to end its side.
        case lingering
        case closed
    }

    private let limits: Connection.Limits
    private var state = State.new
    /// Whether bytes can go through the stream.
    private var isStreamOpen = false
    private var finishReason = Connection.CloseReason.closed
    private var mustClose = false
    /// Why the connection is to be closed.
    private(set) var closeReason = Connection.CloseReason.closed

    /// It goes to another loop: nothing is read, sent or reported here any more.
    private var isMoving = false
    private var saysMove = false

    /// How many handlers are on the stack. What they write is sent when the outermost returns.
    private var handlers = 0
    private(set) var isReceiving = false
    private var pauses = 0
    private var hasPeerEnded = false
    private var reportsEnd = false

    /// How many bytes wait to be sent.
    private(set) var pendingOutput = 0
    /// The stream has taken all it could, and will say when it takes more.
    private var isBlocked = false
    /// More waits than the high watermark; until it is no more than the low one.
    private(set) var isFull = false
    private var endsAfterOutput = false
    private var hasEndedOutput = false

    init(_ limits: Connection.Limits) {
        self.limits = limits
    }

    // MARK: What it says

    var isNew: Bool { state == .new }
    var isOpen: Bool { state == .open }
    var isClosed: Bool { state == .closed }
    var isLingering: Bool { state == .lingering }
    var isFinishing: Bool { state == .finishing }
    var hasEnded: Bool { hasPeerEnded }
    var hasFinishedWriting: Bool { endsAfterOutput }

    /// Whether what comes is to be read now.
    var wantsInput: Bool {
        switch state {
        case .open: !isMoving && !hasPeerEnded && pauses == 0 && (!isFull || limits.readsWhileFull)
        case .lingering: true
        case .new, .finishing, .closed: false
        }
    }

    /// What the stream is to be watched for.
    var interest: DescriptorEvents {
        var events: DescriptorEvents = wantsInput && !isReceiving ? .readable : []
        if isBlocked { events.insert(.writable) }
        return events
    }

    /// Whether anything that is written now will be sent.
    var mayWrite: Bool { (state == .new || state == .open) && !endsAfterOutput }

    /// Whether a handler is on the stack, so that nothing is sent yet.
    var isCorked: Bool { handlers > 0 }

    /// Whether something can be sent from where it lies: nothing waits that has to go before it.
    var mayWriteThrough: Bool {
        pendingOutput == 0 && handlers == 0 && isStreamOpen && state == .open && !isBlocked && !endsAfterOutput
    }

    /// The next thing to do; `nil` if there is nothing until something happens. What it says is taken as begun.
    mutating func next() -> Action? {
        guard state != .closed else { return nil }
        if mustClose { return .close }
        guard handlers == 0 else { return nil }
        if isMoving {
            defer { saysMove = false }
            return saysMove ? .move : nil
        }
        if isStreamOpen, state != .lingering, !isBlocked {
            if pendingOutput > 0 { return .send }
            if !hasEndedOutput && (state == .finishing || endsAfterOutput) { return .endOutput }
        }
        if let most = limits.maximumOutput, pendingOutput > most { return ending(.outputLimit) }
        if let mark = passedMark() { return mark }
        if reportsEnd && state == .open {
            reportsEnd = false
            return .reportEnd
        }
        return hasEndedOutput && state != .lingering ? afterOutput() : nil
    }

    /// Everything is sent, and the peer knows.
    private mutating func afterOutput() -> Action? {
        if state == .open { return hasPeerEnded ? ending(.ended) : nil }
        if hasPeerEnded { return ending(finishReason) }
        state = .lingering
        return .linger
    }

    private mutating func ending(_ reason: Connection.CloseReason) -> Action {
        close(reason)
        return .close
    }

    private mutating func passedMark() -> Action? {
        if !isFull && pendingOutput > limits.highWatermark {
            isFull = true
            return .reportFull
        }
        guard isFull && pendingOutput <= limits.lowWatermark else { return nil }
        isFull = false
        return .reportDrain
    }

    // MARK: What happens

    /// The connection begins.
    mutating func start() {
        state = .open
    }

    mutating func streamOpened() {
        isStreamOpen = true
    }

    /// A handler is about to be called.
    mutating func handlerBegins() {
        handlers += 1
    }

    mutating func handlerEnds() {
        handlers -= 1
    }

    /// The receive handler is about to be called with what has come.
    mutating func receivingBegins() {
        isReceiving = true
        handlers += 1
    }

    /// The receive handler has left so many bytes unused.
    mutating func receivingEnds(unused: Int) {
        isReceiving = false
        handlers -= 1
        if unused > limits.maximumInput { close(.inputLimit) }
    }

    /// The peer has ended its side. Without a handler for that, the connection finishes.
    mutating func peerEnded(hasHandler: Bool) {
        guard !hasPeerEnded else { return }
        hasPeerEnded = true
        if state == .lingering {
            close(finishReason)
        } else if state == .open && hasHandler {
            reportsEnd = true
        } else {
            finish(.ended)
        }
    }

    /// So many bytes wait to be sent, after some were written or sent.
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

    /// - Returns: whether reading goes on now that it did not.
    mutating func resume() -> Bool {
        guard pauses > 0 else { return false }
        pauses -= 1
        return pauses == 0
    }

    mutating func finishWriting() {
        endsAfterOutput = true
    }

    mutating func finish(_ reason: Connection.CloseReason) {
        guard !isMoving else { return }
        switch state {
        case .new: close(reason)
        case .open: (state, finishReason) = (.finishing, reason)
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

    /// A time-out has come.
    mutating func timeOut(_ reason: Connection.CloseReason) {
        close(state == .lingering ? finishReason : reason)
    }

    /// Everything is sent, and the connection can be closed without a word to the peer.
    mutating func closeFinished() {
        close(finishReason)
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
