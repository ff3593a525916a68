#if Adapters
internal import Glibc
internal import NIOCore
internal import RunLoopKit
@_spi(Ports) internal import RunLoopUnix

extension StreamChannel {
    /// Watches the stream for the events that the channel waits for.
    func updateInterest() {
        guard isLive, !isReading, let stream else { return }
        updateInterest(in: stream)
    }

    private func updateInterest(in stream: any ByteStream) {
        var interest: DescriptorEvents = []
        if readPending && !isInputShut && state == .active { interest.insert(.readable) }
        if isBlocked { interest.insert(.writable) }
        if stream.interest != interest { stream.interest = interest }
        // The stream reports no readiness for bytes that it holds.
        guard interest.contains(.readable), stream.holdsInput, !hasTurn else { return }
        hasTurn = true
        loopOfChannel._executeIsolatedUnsafeUnchecked { [self] in
            hasTurn = false
            if state == .active, readPending, !isInputShut, let stream = self.stream { readSome(from: stream) }
        }
    }

    enum Input {
        case some, none, ended
        case failed(any Error)
    }

    /// Reads and passes on at most ``maxMessagesPerRead`` buffers of input.
    func receive(from stream: any ByteStream) -> Input {
        var input = Input.none
        for _ in 0..<maxMessagesPerRead {
            guard isLive, !isInputShut else { return .ended }
            let (buffer, result) = read(from: stream)
            switch result {
            case .done:
                readPending = false
                input = .some
                let isFull = buffer.writableBytes == 0
                passOn(NIOAny(consume buffer))
                // After a partial read, another call would most likely find nothing.
                guard isFull || stream.holdsInput else { return input }
            case .mustWait: return input
            case .ended: return .ended
            case .failed: return .failed(streamError)
            }
        }
        return input
    }

    private func read(from stream: any ByteStream) -> (NIOCore.ByteBuffer, StreamResult) {
        if let ownBuffers { return ownBuffers.read(from: stream, allocator) }
        let (buffer, result) = loopOfChannel.readBuffers.read(sizes.nextBufferSize() ?? 0, from: stream)
        if case .done(let count) = result { _ = sizes.record(actualReadBytes: count) }
        return (buffer, result)
    }

    private func passOn(_ input: NIOAny) { withHandlers { $0.fireChannelRead(input) } }

    // The channel keeps the same stream while it is live.
    private func readSome(from stream: any ByteStream) {
        let group = loopOfChannel.flushGroup
        reading = .running(sendsNextFlush: group.isFresh)
        readAndReport(from: stream)
        reading = .none
        group.channelWasRead(on: loopOfChannel.loop)
        if isLive { updateInterest(in: stream) }
    }

    private func readAndReport(from stream: any ByteStream) {
        switch receive(from: stream) {
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
        if isLive { withHandlers { $0.fireChannelReadComplete() } }
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
        guard let stream else { return }
        if events.contains(.writable), isLive {
            isBlocked = false
            flushNow()
            // The stream could not accept the end earlier.
            if isOutputClosing, writes.isEmpty, isLive { endOutput(stream) }
        }
        // A handler is running the loop, and gets more input after it returns.
        if isReading, isLive { return stream.interest = isBlocked ? .writable : [] }
        if events.contains(.readable), state == .active, readPending, !isInputShut {
            return readSome(from: stream)
        }
        updateInterest()
    }

    func streamFailed() {
        guard isOpen else { return }
        let error = streamError
        pipeline.syncOperations.fireErrorCaught(error)
        close0(error: error, mode: .all, promise: nil)
    }

    func streamLostItsLoop() { lostItsLoop() }
}
#endif
