extension RunLoop {
    /// A block that waits for one of its modes.
    struct Block {
        let modes: Modes
        let body: (RunLoop) -> Void
        let origin: Origin
    }

    /// Runs `block` in the next pass of the loop in the default mode (R74). From another thread:
    /// ``Remote/perform(inModes:_:)``.
    public func perform(_ block: @escaping () -> Void, file: StaticString = #fileID, line: UInt32 = #line) {
        perform(inModes: .default, block, file: file, line: line)
    }

    /// Runs `block` in the next pass of the loop in one of `modes`, once, never before this call has returned
    /// (R74–R78).
    ///
    /// Blocks run in the order in which they were given. A block that is queued for the running mode keeps the loop
    /// from sleeping. If `modes` is empty nothing is queued (R156).
    public func perform(
        inModes modes: Modes, _ block: @escaping () -> Void, file: StaticString = #fileID, line: UInt32 = #line
    ) {
        checkThread()
        guard !modes.isEmpty else { return }
        blocks.append(Block(modes: modes, body: { _ in block() }, origin: Origin(file: file, line: line)))
    }

    private func isEligible(_ block: Block, in mode: Mode) -> Bool {
        block.modes.explicit.contains(mode) || (block.modes.includesCommon && commonModes.contains(mode))
    }

    func hasBlocks(for mode: Mode) -> Bool {
        !blocks.isEmpty && blocks.contains { isEligible($0, in: mode) }
    }

    /// Runs the blocks that are queued for `mode` now. Those that they queue wait for the next time, and a nested run
    /// does not see the rest of the batch (R56, R80).
    func performBlocks(in mode: Mode) -> Bool {
        guard hasBlocks(for: mode) else { return false }
        var batch = spareBlocks
        spareBlocks = []
        swap(&batch, &blocks)
        if !batch.allSatisfy({ isEligible($0, in: mode) }) {
            blocks = batch.filter { !isEligible($0, in: mode) }
            batch.removeAll { !isEligible($0, in: mode) }
        }
        // By index: what is taken out of the array whole is counted a second time, part by part.
        for index in batch.indices {
            calling(.block, nil, batch[index].origin) { batch[index].body(self) }
        }
        statistics.blocks += batch.count
        batch.removeAll(keepingCapacity: true)
        if spareBlocks.capacity < batch.capacity { spareBlocks = batch }
        return true
    }
}
