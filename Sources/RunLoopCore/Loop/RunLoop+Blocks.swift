extension RunLoop {
    /// Runs `block` in the next pass of the loop in the default mode. On the loop's thread; from other threads use
    /// `perform(inModes:_:)` of the loop's ``remote``.
    public func perform(_ block: @escaping () -> Void, file: StaticString = #fileID, line: UInt32 = #line) {
        perform(inModes: .default, block, file: file, line: line)
    }

    /// Runs `block` once, in the next pass of the loop in one of `modes`, and never before this call has returned:
    /// `CFRunLoopPerformBlock`.
    ///
    /// Blocks run in the order in which they were given. A block that waits for the running mode keeps the loop from
    /// sleeping. If `modes` is empty, nothing is queued. On the loop's thread, O(1).
    public func perform(
        inModes modes: Modes, _ block: @escaping () -> Void, file: StaticString = #fileID, line: UInt32 = #line
    ) {
        checkThread()
        guard !modes.isEmpty else { return }
        blocks.append(Block(modes: modes, body: { _ in block() }, origin: Origin(file: file, line: line)))
    }

    func hasBlocks(for mode: Mode) -> Bool {
        guard !blocks.isEmpty else { return false }
        let isCommon = commonModes.contains(mode)
        return blocks.contains { $0.runs(in: mode, isCommon: isCommon) }
    }

    /// Runs the blocks that are queued for `mode` now. Those that they queue wait for the next time, and a nested run
    /// does not see the rest of the batch (R56, R80).
    func performBlocks(in mode: Mode) -> Bool {
        guard hasBlocks(for: mode) else { return false }
        var batch = BlockQueue<RunLoop>()
        swap(&batch, &mail.blocks)
        swap(&batch, &blocks)
        let isCommon = commonModes.contains(mode)
        if batch.contains(where: { !$0.runs(in: mode, isCommon: isCommon) }) {
            for _ in 0..<batch.count {
                guard let block = batch.popFirst() else { break }
                if block.runs(in: mode, isCommon: isCommon) { batch.append(block) } else { blocks.append(block) }
            }
        }
        let count = batch.count
        while let block = batch.popFirst() {
            dispatch(.block, nil, block.origin) { block.body(self) }
        }
        statistics.blocks += count
        if mail.blocks.capacity < batch.capacity { swap(&mail.blocks, &batch) }
        return true
    }
}
