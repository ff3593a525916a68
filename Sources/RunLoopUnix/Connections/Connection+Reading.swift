@_spi(Ports) internal import RunLoopKit

// Input: reading, offering, keeping and discarding it.

extension Connection {
    /// Reads once, at most 64 KiB, or 256 KiB if the last read returned 64 KiB or more (decision 118).
    func readSome() {
        if hasIdleTimeout, !machine.discardsInput { timers?.noteInput() }
        repeat {
            let result = machine.discardsInput ? discardOnce() : readOnce()
            if case .done(let count) = result { isStreaming = count >= BufferPool.size } else { hasReadNothing(result) }
            // No readiness is reported for bytes that the stream already holds.
        } while stream.holdsInput && machine.wantsInput && isOpen
    }

    /// Ends the input: the owner is offered the bytes that have arrived, and then the end of the stream, as if the peer
    /// had ended its side.
    ///
    /// - Parameter awaitsFirst: whether a connection to which nothing has come yet is read until something has.
    func endInput(awaitsFirst: Bool) {
        update {
            if machine.mayRead { readSome() }
            if isOpen { machine.endInput(awaitsFirst: awaitsFirst) }
        }
    }

    private func readOnce() -> StreamResult {
        if let input {
            let result = input.fill(room: 16 * 1024, from: stream)
            if case .done = result { offer(input) }
            return result
        }
        // Tasks have not yet seen the first bytes.
        let scratch = isStreaming && !machine.isForTasks ? pool.takeLarge() : pool.take()
        let result = scratch.fill(room: 1, limit: BufferPool.largeSize, from: stream)
        if case .done = result {
            assert(offered == nil, "two buffers are offered at a time")
            offered = scratch
            offer(scratch)
            offered = nil
            if output === scratch { return result }
            if machine.isForTasks {
                // A task uses the whole buffer soon.
                input = scratch
                return result
            }
            if !scratch.isEmpty, isOpen {
                let kept = ByteBuffer(capacity: max(4096, scratch.count))
                kept.append(scratch.bytes)
                input = kept
            }
        }
        pool.put(scratch)
        return result
    }

    private func discardOnce() -> StreamResult {
        let scratch = pool.take()
        defer { pool.put(scratch) }
        machine.discarded()
        return scratch.fill(room: 1, from: stream)
    }

    @inline(never)
    private func hasReadNothing(_ result: StreamResult) {
        switch result {
        case .done: break
        case .mustWait: machine.inputExhausted()
        case .ended: machine.peerEnded()
        case .failed: machine.inputFailed(streamFailure)
        }
    }

    /// Passes the buffer's bytes to the handler, and removes the used ones.
    func offer(_ buffer: ByteBuffer) {
        guard let receive else { return leaveToTask(buffer.count) }
        machine.receivingBegins()
        let used = receive(self, Span(_unsafeBytes: buffer.bytes))
        require(
            used >= 0 && used <= buffer.count,
            "a receive handler returns how many of the bytes it has used, not \(used) of \(buffer.count)")
        let unused = buffer.count - used
        if output === buffer && unused > 0 { keepOffered() }
        if output !== buffer { buffer.discard(used) }
        machine.receivingEnds(unused: unused, held: heldInput)
        if hasBudget { count(unused + heldInput) }
        if buffer === input, buffer.isEmpty { input = nil }
    }

    /// Counts held input in the budget.
    func count(_ input: Int) {
        guard let budget = limits.inputBudget, input != budgetedInput else { return }
        assert(budgetedInput >= 0, "a budget counts less than no input")
        let isWithin = budget.change(by: input - budgetedInput)
        budgetedInput = input
        if !isWithin { machine.close(.inputLimit) }
    }

    /// Notifies the task that waits for input; without such a task, reading stops until there is one. A notified task
    /// no longer waits, even if modes or a nested run delay it.
    func leaveToTask(_ count: Int) {
        guard machine.isForTasks else { return }
        let waits = madeWaits
        machine.inputChanged(to: count)
        if hasBudget { self.count(count + heldInput) }
        let isAwaited = waits.reader.isWaiting
        waits.reader.end()
        if !isAwaited { machine.holdInput() }
    }

    /// Reads input without offering it, and returns whether there was any.
    @inline(never)
    func keepMore() -> Bool {
        let buffer = input ?? ByteBuffer(capacity: 16 * 1024)
        guard case .done = buffer.fill(room: 16 * 1024, from: stream) else { return false }
        input = buffer
        machine.inputChanged(to: buffer.count)
        return true
    }
}
