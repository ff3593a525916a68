internal import RunLoopKit

// Input: reading, offering, keeping and discarding it.

extension Connection {
    /// Reads once, at most 64 KiB, or 256 KiB if the last read brought 64 KiB or more (decision 118).
    func readSome() {
        if hasIdleTimeout, !machine.discardsInput { timers?.noteInput() }
        repeat {
            let result = machine.discardsInput ? discardOnce() : readOnce()
            if case .done(let count) = result { isStreaming = count >= BufferPool.size } else { hasReadNothing(result) }
            // No readiness is reported for bytes that the stream holds already.
        } while stream.holdsInput && machine.wantsInput && isOpen
    }

    private func readOnce() -> StreamResult {
        if let input {
            let result = input.fill(room: 16 * 1024, from: stream)
            if case .done = result { offer(input) }
            return result
        }
        // Tasks have not seen the first bytes yet.
        let scratch = isStreaming && waits == nil ? pool.takeLarge() : pool.take()
        let result = scratch.fill(room: 1, limit: BufferPool.largeSize, from: stream)
        if case .done = result {
            offered = scratch
            offer(scratch)
            offered = nil
            if output === scratch { return result }
            if waits != nil {
                // A task uses it soon, and all of it.
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

    /// Gives the handler the buffer's bytes, and removes those that it has used.
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

    /// Counts input that is held for the budget.
    func count(_ input: Int) {
        guard let budget = limits.inputBudget, input != budgetedInput else { return }
        let isWithin = budget.change(by: input - budgetedInput)
        budgetedInput = input
        if !isWithin { machine.close(.inputLimit) }
    }

    /// Tells the task that waits for input. If there is none, reading stops until there is one. A task that has been
    /// told, and that the modes or a nested run hold back, waits no more.
    func leaveToTask(_ count: Int) {
        guard let waits else { return }
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
