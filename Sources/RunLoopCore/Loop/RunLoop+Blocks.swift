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
    /// sleeping. After 1,024 blocks, or about 5 ms, timers and sources have their turn before the remaining blocks run.
    /// If `modes` is empty, nothing is queued. On the loop's thread, O(1).
    public func perform(
        inModes modes: Modes, _ block: @escaping () -> Void, file: StaticString = #fileID, line: UInt32 = #line
    ) {
        checkThread()
        guard !modes.isEmpty else { return }
        let origin = Origin(file: file, line: line)
        guard !isWatched(.effects) else {
            return blocks.append(Block(modes: modes, body: watchedPost({ _ in block() }, origin), origin: origin))
        }
        blocks.append(Block(modes: modes, body: { _ in block() }, origin: origin))
    }

    func hasBlocks(for mode: Mode) -> Bool {
        !blocks.isEmpty && blocks.hasBlocks(for: mode, isCommon: modeTable.common.contains(mode))
    }

    /// The limits of a turn: other costs of a pass are negligible, and two turns fit in a frame of a 60th of a second.
    static let blocksPerTurn = 1024
    static let timePerTurn = Duration.milliseconds(5)

    /// Runs the blocks that wait for `mode` now, up to the limit of a turn. The remaining blocks run in the next turn,
    /// before blocks that they post, and a nested run does not see the rest of the batch. The turn of a stopped run
    /// runs all of them, because they were posted before the stop.
    func performBlocks(in mode: Mode) -> Bool {
        guard !blocks.isEmpty else { return false }
        let isCommon = modeTable.common.contains(mode)
        if let block = blocks.popAlone(for: mode, isCommon: isCommon) {
            dispatch(Callee(.block, nil, block.origin)) { block.body(self) }
            statistics.blocks += 1
            return true
        }
        return performBatch(in: mode, isCommon: isCommon)
    }

    private func performBatch(in mode: Mode, isCommon: Bool) -> Bool {
        guard var batch = blocks.takeBatch(of: mode, isCommon: isCommon) else { return false }
        let total = batch.count
        assert(total > 0, "a batch has no blocks")
        var turn = Turn()
        while let block = batch.popFirst() {
            dispatch(Callee(.block, nil, block.origin)) { block.body(self) }
            if turn.isOver(in: self) && batch.count > 0 && !runs.innermost!.isStopped { break }
        }
        assert(batch.count < total, "a turn has run none of its blocks")
        statistics.blocks += total - batch.count
        blocks.putBack(batch)
        return true
    }
}
