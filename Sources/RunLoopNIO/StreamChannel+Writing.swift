#if Adapters
internal import NIOCore
@_spi(Ports) internal import RunLoopUnix
internal import Synchronization

extension StreamChannel {
    /// Defers a flush by handlers that are receiving input.
    ///
    /// - Returns: `false` if the output must be sent at once, because it is the first, or because a handler would
    ///   notice the delay.
    func deferFlush() -> Bool {
        guard case .running(let sendsNextFlush) = reading else { return false }
        guard !sendsNextFlush else {
            reading = .running(sendsNextFlush: false)
            return false
        }
        guard !writes.hasPromises, knownWritability, !isOutputClosing, writes.bytes < Self.mostDeferred else {
            return false
        }
        if !isDeferred { isDeferred = loopOfChannel.flushGroup.add(self) }
        return isDeferred
    }

    /// Sends any deferred output.
    func flushDeferred() {
        guard isDeferred else { return }
        isDeferred = false
        flushNow()
    }

    /// Sends flushed output until the stream has accepted all or accepts no more. Nested calls do nothing.
    func flushNow() {
        guard !isFlushing, isLive, let stream, stream.isOpen else { return }
        isFlushing = true
        defer { isFlushing = false }
        while isOpen, writes.hasFlushed, !isBlocked {
            let progress = flushOnce(to: stream)
            if progress == .failed { return outputHasFailed() }
            let endsOutput = isOutputClosing
            if !knownWritability, isWritable {
                knownWritability = true
                pipeline.syncOperations.fireChannelWritabilityChanged()
            }
            guard isOpen else {
                // As in SwiftNIO, a handler that closes the channel just before its output ends still receives that
                // event.
                if progress == .complete, endsOutput, !isOutputShut, !isInputShut {
                    pipeline.fireUserInboundEventTriggered(ChannelEvent.outputClosed)
                }
                return
            }
            if progress == .complete {
                guard endsOutput, !isOutputShut else { continue }
                if isInputShut { return closeAll(ChannelError.outputClosed, nil) }
                if writes.isEmpty { endOutput(stream) }
            } else {
                // Other channels have their turn even if the stream could accept more at once.
                isBlocked = writes.hasFlushed
            }
        }
    }

    /// Sends flushed output, stopping after ``writeSpin`` + 1 calls of which the stream accepts only a part.
    private func flushOnce(to stream: any ByteStream) -> PendingWrites.Progress {
        var spins = writeSpin + 1
        while isOpen, writes.hasFlushed {
            let progress = writes.write(to: stream, completed: &completed)
            if writes.bytes < waterMark.low { writability.store(true, ordering: .relaxed) }
            fulfil()
            switch progress {
            case .complete: break
            case .partial:
                spins -= 1
                if spins == 0 { return .partial }
            case .blocked, .failed: return progress
            }
        }
        return .complete
    }

    /// Fulfils the promises of output that the stream has accepted.
    private func fulfil() {
        guard !completed.isEmpty else { return }
        var promises: [EventLoopPromise<Void>] = []
        swap(&promises, &completed)
        for promise in promises { promise.succeed(()) }
        // Keeps the memory.
        promises.removeAll(keepingCapacity: true)
        if completed.isEmpty { swap(&promises, &completed) }
    }

    /// Closes the channel after its output has failed. Input that the peer sent before is read first.
    private func outputHasFailed() {
        let error = streamError
        readIfNeeded()
        if readPending, let stream {
            var hasRead = false
            while case .some = receive(from: stream) { hasRead = true }
            if hasRead, isLive { pipeline.fireChannelReadComplete() }
        }
        close0(error: error, mode: .all, promise: nil)
    }

    /// Ends the output after everything has been written.
    func endOutput(_ stream: any ByteStream) {
        switch stream.endWriting() {
        case .mustWait: isBlocked = true
        case .failed: outputHasFailed()
        case .done, .ended:
            let former = output
            output = .shut
            if case .closing(let promise) = former { promise?.succeed(()) }
            pipeline.fireUserInboundEventTriggered(ChannelEvent.outputClosed)
        }
    }
}
#endif
