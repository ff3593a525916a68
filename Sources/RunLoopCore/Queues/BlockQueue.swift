/// A closure posted for some modes. `Loop` is the type that runs it.
struct Block<Loop: AnyObject> {
    let modes: RunLoop.Modes
    let body: (Loop) -> Void
    let origin: RunLoop.Origin
}

extension RunLoop.Modes {
    @inline(__always)
    func contain(_ mode: RunLoop.Mode, isCommon: Bool) -> Bool {
        !groups.isDisjoint(with: isCommon ? [.common, .every] : .every) || explicit.contains(mode)
    }
}

/// The blocks of a loop, which wait for their modes.
///
/// New blocks are *fresh*, and most of them run from there. When a mode runs that some of them are not for, or for
/// which older blocks wait in lanes, fresh blocks move to *lanes*: one for each set of modes, in order of arrival. A
/// mode thus never looks at a block that waits for another mode: a block costs O(lanes) at most, however many wait.
///
/// A *batch* holds the blocks that wait for a mode at one moment. It is taken out to be run, so that nothing else sees
/// it, and its remaining blocks come back before all later ones.
struct BlockQueue<Loop: AnyObject>: ~Copyable {
    private var fresh = FIFO<Block<Loop>>()
    /// The number of first fresh blocks known to be for `mode`: the rest of a batch.
    private var known: (count: Int, mode: RunLoop.Mode) = (0, .default)
    /// The number of the next block that leaves the fresh ones. Numbers order the blocks of several lanes.
    private var nextNumber = 0

    private var lanes = BlockLanes<Loop>()
    /// The memory of the last batch of lanes, kept so that steady work with lanes allocates nothing.
    private var spareLanes = BlockLanes<Loop>()

    /// The number of waiting blocks, without the blocks of batches.
    var count: Int { fresh.count + lanes.blockCount }
    var isEmpty: Bool { fresh.isEmpty && lanes.blockCount == 0 }

    var laneCount: Int { lanes.lanes.count }

    var capacity: Int { fresh.capacity + lanes.capacity }

    @inline(__always)
    mutating func append(_ block: consuming Block<Loop>) {
        fresh.append(block)
    }

    /// Moves all of `blocks`, in order, to the end of this queue.
    @inline(__always)
    mutating func append(contentsOf blocks: inout FIFO<Block<Loop>>) {
        guard !fresh.isEmpty else { return swap(&fresh, &blocks) }
        while let block = blocks.popFirst() { fresh.append(block) }
    }

    // Mutating, because for a nonmutating call the compiler copies the whole of a queue that is a property.
    mutating func hasBlocks(for mode: RunLoop.Mode, isCommon: Bool) -> Bool {
        if !fresh.allSatisfy(from: 0, { !$0.modes.contain(mode, isCommon: isCommon) }) { return true }
        return lanes.hasBlocks(for: mode, isCommon: isCommon)
    }

    /// Takes the only waiting block if it is for `mode`. It needs no batch, and most blocks come alone.
    @inline(__always)
    mutating func popAlone(for mode: RunLoop.Mode, isCommon: Bool) -> Block<Loop>? {
        guard fresh.count == 1, lanes.blockCount == 0, fresh[0].modes.contain(mode, isCommon: isCommon) else {
            return nil
        }
        known.count = 0
        return fresh.popFirst()
    }

    /// Takes the blocks that wait for `mode`; `nil` if there are none.
    @inline(__always)
    mutating func takeBatch(of mode: RunLoop.Mode, isCommon: Bool) -> BlockBatch<Loop>? {
        guard isFreshOnly(for: mode, isCommon: isCommon) else { return takeLanes(for: mode, isCommon: isCommon) }
        assert(lanes.blockCount == 0, "a batch leaves older blocks behind")
        nextNumber += fresh.count
        known.count = 0
        var batch = BlockBatch<Loop>(mode: mode, endNumber: nextNumber)
        swap(&fresh, &batch.fresh)
        return batch
    }

    /// Returns whether all waiting blocks are fresh, and for `mode`.
    @inline(__always)
    private mutating func isFreshOnly(for mode: RunLoop.Mode, isCommon: Bool) -> Bool {
        assert(known.count <= fresh.count, "more blocks are known than wait")
        // Blocks known to be for another mode are not checked again in each pass.
        guard lanes.blockCount == 0, !fresh.isEmpty, known.count == 0 || known.mode == mode else { return false }
        guard fresh.allSatisfy(from: known.count, { $0.modes.contain(mode, isCommon: isCommon) }) else { return false }
        known = (fresh.count, mode)
        return true
    }

    @inline(never)
    private mutating func takeLanes(for mode: RunLoop.Mode, isCommon: Bool) -> BlockBatch<Loop>? {
        known.count = 0
        while let block = fresh.popFirst() {
            lanes.append(block, number: nextNumber)
            nextNumber += 1
        }
        guard lanes.hasBlocks(for: mode, isCommon: isCommon) else { return nil }
        var batch = BlockBatch<Loop>(mode: mode, endNumber: nextNumber)
        swap(&spareLanes, &batch.lanes)
        assert(batch.lanes.blockCount == 0, "the spare lanes hold blocks")
        lanes.moveBlocks(for: mode, isCommon: isCommon, to: &batch.lanes)
        assert(!lanes.hasBlocks(for: mode, isCommon: isCommon), "a batch leaves blocks of its mode behind")
        return batch
    }

    /// Takes back a batch, whose remaining blocks wait again.
    @inline(__always)
    mutating func putBack(_ batch: consuming BlockBatch<Loop>) {
        assert(batch.fresh.isEmpty || batch.lanes.blockCount == 0, "a batch has blocks in two places")
        if batch.lanes.isUnused && batch.fresh.isEmpty {
            if fresh.isEmpty && fresh.capacity < batch.fresh.capacity { swap(&fresh, &batch.fresh) }
        } else {
            putBackRest(batch)
        }
    }

    @inline(never)
    private mutating func putBackRest(_ batch: consuming BlockBatch<Loop>) {
        assert(batch.endNumber <= nextNumber, "a batch is of another queue")
        if batch.lanes.isUnused && lanes.blockCount == 0 {
            // None of the later blocks has a number: the batch's blocks are the first of the fresh ones again.
            known = (batch.fresh.count, batch.mode)
            while let block = fresh.popFirst() { batch.fresh.append(block) }
            swap(&fresh, &batch.fresh)
        } else {
            var number = batch.endNumber - batch.fresh.count
            while let block = batch.fresh.popFirst() {
                batch.lanes.append(block, number: number)
                number += 1
            }
            lanes.putBack(&batch.lanes)
            swap(&spareLanes, &batch.lanes)
        }
    }

    /// Returns the transformed waiting blocks in order of arrival, without the blocks of batches.
    func map<Result>(_ transform: (Block<Loop>) -> Result) -> [Result] {
        lanes.map(transform) + (0..<fresh.count).map { transform(fresh[$0]) }
    }

    /// Traps unless the lanes are in order, and the memory for a batch is empty.
    func checkInvariants() {
        lanes.checkInvariants()
        precondition(spareLanes.blockCount == 0, "the spare lanes hold blocks")
        precondition(known.count <= fresh.count, "more blocks are known than wait")
    }
}

/// The blocks that waited for a mode at one moment, in order of arrival.
struct BlockBatch<Loop: AnyObject>: ~Copyable {
    fileprivate let mode: RunLoop.Mode
    /// The end of the numbers of the fresh blocks.
    fileprivate let endNumber: Int
    // Blocks are either in `fresh` or in `lanes`.
    fileprivate var fresh = FIFO<Block<Loop>>()
    fileprivate var lanes = BlockLanes<Loop>()

    var count: Int { fresh.count + lanes.blockCount }

    @inline(__always)
    mutating func popFirst() -> Block<Loop>? {
        if let block = fresh.popFirst() { return block }
        return lanes.blockCount == 0 ? nil : lanes.popFirst()
    }
}
