internal import Glibc
@_spi(Ports) public import RunLoopKit

// The events of a connection, and the actions that its machine returns.

extension Connection {
    /// Passes an event to the machine, and carries out the machine's actions. Every event of a connection takes this
    /// path.
    ///
    /// Events in a receive handler, except closing, take effect when the handler has returned; the connection neither
    /// reads nor sends before.
    @inline(__always)
    func update(_ event: () throws -> Void) rethrows {
        try event()
        if !machine.isReceiving || machine.mustClose { settle() }
    }

    /// Carries out the machine's actions until none is left.
    private func settle() {
        while let action = machine.next() {
            switch action {
            case .send: if notices == nil { send() } else { sendAndNotify() }
            case .endOutput: endOutput()
            case .linger:
                timers?.look(after: ConnectionMachine.pauseBetweenLooks) { [unowned self] in look() }
            case .offerLater:
                guard machine.needsTurn(holdsInput: stream.holdsInput) else { continue }
                loop.perform(inModes: modes) { [weak self] in self?.takeTurn() }
            case .reportEnd:
                waits?.reader.end()
                machine.endReported(isAnswered: endHandler != nil || machine.isForTasks)
                call(endHandler)
            case .reportFull: call(fullHandler)
            case .reportDrain:
                waits?.writer.end()
                call(drainHandler)
            // Posted, because the stream's functions may be on the stack, and must not race with another thread.
            case .move: loop.perform(inModes: .every) { [self] in depart() }
            case .close: return end(machine.closeReason)
            }
        }
        if isOpen { watch() }
    }

    /// Watches the stream for the events that the machine waits for.
    @inline(__always)
    private func watch() {
        let interest = machine.interest
        guard interest != self.interest else { return }
        if hasIdleTimeout, interest.subtracting(self.interest).contains(.readable) { timers?.beganReading() }
        self.interest = interest
        stream.interest = interest
    }

    /// Offers unused input, and reads input that the stream holds.
    private func takeTurn() {
        update {
            if machine.turnBegins(), let input { offer(input) }
            if machine.readsInTurn(holdsInput: stream.holdsInput) { readSome() }
        }
    }

    /// Checks, while lingering, whether the peer's system has all output.
    private func look() {
        update {
            let mayClose = stream.mayClose(peerHasEnded: false)
            if machine.looked(unsent: stream.unsentOutput, mayClose: mayClose) { timers?.noteActivity() }
        }
    }

    /// Calls a handler, whose output is sent together when it returns.
    func call(_ handler: ((Connection) -> Void)?) {
        guard let handler else { return }
        machine.handlerBegins()
        handler(self)
        machine.handlerEnds()
    }

    /// Calls a block as a handler.
    func handle(_ body: (Connection) -> Void) {
        update {
            machine.handlerBegins()
            body(self)
            machine.handlerEnds()
        }
    }

    // MARK: Sending

    /// - Returns: the number of bytes that the stream has accepted.
    func transmit(_ bytes: UnsafeRawBufferPointer) -> Int {
        transmitted(stream.write(bytes), of: bytes.count)
    }

    /// Transmits several pieces, and returns the number of accepted bytes. A stream that accepts a part may accept
    /// more.
    func transmit(gathering pieces: ArraySlice<[UInt8]>) -> Int {
        withUnsafeTemporaryAllocation(of: UnsafeRawBufferPointer.self, capacity: pieces.count) { room in
            transmitted(stream.write(pieces, into: room, described: 0), of: 0)
        }
    }

    @inline(__always)
    private func transmitted(_ result: StreamResult, of all: Int) -> Int {
        switch result {
        case .done(let count):
            if hasIdleTimeout { timers?.noteActivity() }
            if count < all { machine.block() }
            return count
        case .mustWait: machine.block()
        case .ended, .failed: outputHasFailed()
        }
        return 0
    }

    private func send() {
        guard let output else { return }
        let count = transmit(output.bytes)
        guard !isOutputLost else { return }
        assert(count <= output.count, "more was sent than there was")
        output.discard(count)
        machine.outputChanged(to: output.count)
        guard output.isEmpty else { return }
        self.output = nil
        pool.put(output)
    }

    private func sendAndNotify() {
        let before = pendingOutput
        send()
        if !isOutputLost { notify(sent: before - pendingOutput) }
    }

    private func endOutput() {
        if machine.isFinishing && stream.mayClose(peerHasEnded: machine.hasReadEnd) { return machine.finished() }
        switch stream.endWriting() {
        case .mustWait: machine.block()
        case .failed: outputHasFailed()
        case .done, .ended: machine.outputEnded()
        }
    }

    private func dropOutput() {
        if let output, output !== offered { pool.put(output) }
        output = nil
    }

    var streamFailure: CloseReason {
        .failed(stream.failure ?? SystemError("use the connection", errno: EIO))
    }

    /// Drops the output after a failed write, and keeps input that the peer may have sent before it closed.
    func outputHasFailed() {
        let reason = streamFailure
        isOutputLost = true
        dropOutput()
        waits?.writer.end()
        let keepsInput = machine.mayReadAfterFailure && keepMore()
        guard machine.outputFailed(reason, keepsInput: keepsInput) else { return }
        leaveToTask(unusedInput)
        // A limit, because a program that has paused reading may never resume.
        timers?.limit(to: .seconds(30))
    }

    // MARK: The end

    func end(_ reason: CloseReason) {
        let isComplete = pendingOutput == 0 && !isOutputLost
        let ending: StreamEnding = machine.resets ? .reset : isComplete ? .complete : .incomplete
        machine.closed()
        stream.close(ending)
        dropOutput()
        letGo(reporting: reason)
    }

    /// Releases the resources of a closed connection, and calls its close handler if there is a reason.
    func letGo(reporting reason: CloseReason?) {
        assert(machine.isClosed, "an open connection is let go")
        timers?.invalidate()
        count(0)
        assert(budgetedInput == 0, "a budget still counts the input of a closed connection")
        let (handler, dropped) = (
            closeHandler, (receive, endHandler, fullHandler, drainHandler, handshakeHandler, input, departure)
        )
        (timers, output, departure) = (nil, nil, nil)
        // Tasks still receive the input from before the end.
        if !machine.isForTasks { input = nil }
        (receive, closeHandler, endHandler) = (nil, nil, nil)
        (fullHandler, drainHandler, handshakeHandler) = (nil, nil, nil)
        if let reason { handler?(self, reason) }
        keeper.take()?.lost(self)
        waits?.end()
        withExtendedLifetime(dropped) {}
        endNotices()
    }
}

@_spi(Ports) extension Connection: StreamOwner {
    public func streamOpened() {
        update {
            machine.streamOpened()
            if !machine.isFinishing { call(handshakeHandler) }
        }
    }

    public func streamIsReady(for events: DescriptorEvents) {
        if events.contains(.writable) { machine.unblock() }
        // In a run nested in the receive handler, the stream waits until the handler returns.
        guard !machine.isReceiving else { return watch() }
        update { if events.contains(.readable), machine.wantsInput { readSome() } }
    }

    public func streamFailed() {
        update { machine.close(streamFailure) }
    }

    public func streamLostItsLoop() {
        update { machine.close(.loopEnded) }
    }
}
