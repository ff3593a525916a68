#if Adapters
internal import Glibc
internal import NIOCore
internal import RunLoopKit
internal import RunLoopUnix

extension StreamChannel {
    /// Watches the stream for the events that the channel waits for.
    func updateInterest() {
        guard isLive, !isReading, let stream else { return }
        var interest: DescriptorEvents = []
        if readPending && !isInputShut && state == .active { interest.insert(.readable) }
        if isBlocked { interest.insert(.writable) }
        if stream.interest != interest { stream.interest = interest }
        // The stream reports no readiness for bytes that it holds.
        guard interest.contains(.readable), stream.holdsInput, !hasTurn else { return }
        hasTurn = true
        loopOfChannel._executeIsolatedUnsafeUnchecked { [self] in
            hasTurn = false
            if state == .active, readPending, !isInputShut { readSome() }
        }
    }

    enum Input {
        case some, none, ended
        case failed(any Error)
    }

    /// Reads and passes on some input, at most ``maxMessagesPerRead`` buffers.
    func receive() -> Input {
        var input = Input.none
        for _ in 0..<maxMessagesPerRead {
            guard isLive, !isInputShut, let stream else { return .ended }
            let (buffer, result) = read(from: stream)
            switch result {
            case .done:
                readPending = false
                input = .some
                let isFull = buffer.writableBytes == 0
                passOn(NIOAny(buffer))
                // Otherwise another call would most likely find nothing.
                guard isFull || stream.holdsInput else { return input }
            case .mustWait: return input
            case .ended: return .ended
            case .failed: return .failed(streamError)
            }
        }
        return input
    }

    private func read(from stream: any ByteStream) -> (NIOCore.ByteBuffer, StreamResult) {
        guard ownBuffers == nil else {
            let (buffer, result) = ownBuffers!.buffer(allocator: allocator) { $0.read(from: stream) }
            if case .done(let count) = result { ownBuffers!.record(actualReadBytes: count) }
            return (buffer, result)
        }
        let (buffer, result) = loopOfChannel.readBuffers.read(sizes.nextBufferSize() ?? 0, from: stream)
        if case .done(let count) = result { _ = sizes.record(actualReadBytes: count) }
        return (buffer, result)
    }

    private func passOn(_ input: NIOAny) {
        flushing = .firstAtOnce
        pipeline.syncOperations.fireChannelRead(input)
        flushDeferred()
        flushing = .atOnce
    }

    func readSome() {
        isReading = true
        readAndReport()
        isReading = false
        updateInterest()
    }

    private func readAndReport() {
        switch receive() {
        case .some: break
        case .none: return
        case .ended:
            guard isLive, !isInputShut else { return }
            pipeline.syncOperations.fireChannelReadComplete()
            close0(error: ChannelError.eof, mode: allowsHalfClosure ? .input : .all, promise: nil)
            readPending = false
            return
        case .failed(let error):
            pipeline.syncOperations.fireErrorCaught(error)
            return close0(error: error, mode: .all, promise: nil)
        }
        if isLive { pipeline.syncOperations.fireChannelReadComplete() }
        readIfNeeded()
    }

    var streamError: any Error {
        guard let failure = stream?.failure else { return IOError(errnoCode: EIO, reason: "use the stream") }
        return failure.forHandlers
    }
}

extension StreamChannel: StreamOwner {
    func streamOpened() {
        if state == .activating { begin() }
    }

    func streamIsReady(for events: DescriptorEvents) {
        if events.contains(.writable), isLive {
            isBlocked = false
            flushNow()
            // The stream could not take the end before.
            if outputClosing != nil, writes.isEmpty, let stream { endOutput(stream) }
        }
        // A handler runs the loop. It gets more input when it has returned.
        if isReading, isLive, let stream { return stream.interest = isBlocked ? .writable : [] }
        if events.contains(.readable), state == .active, readPending, !isInputShut { return readSome() }
        updateInterest()
    }

    func streamFailed() {
        guard isOpen else { return }
        let error = streamError
        pipeline.syncOperations.fireErrorCaught(error)
        close0(error: error, mode: .all, promise: nil)
    }

    func streamLostItsLoop() {
        if !loopOfChannel.endsWithLoop() { close0(error: Self.refused, mode: .all, promise: nil) }
    }
}
#endif
