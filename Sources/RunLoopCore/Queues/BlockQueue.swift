/// A closure that was posted for some modes. `Loop` is what runs it.
struct Block<Loop: AnyObject> {
    let modes: RunLoop.Modes
    let body: (Loop) -> Void
    let origin: RunLoop.Origin

    /// Whether it runs in `mode`, which is one of the common modes or is not.
    @inline(__always)
    func runs(in mode: RunLoop.Mode, isCommon: Bool) -> Bool { modes.contain(mode, isCommon: isCommon) }
}

extension RunLoop.Modes {
    @inline(__always)
    fileprivate func contain(_ mode: RunLoop.Mode, isCommon: Bool) -> Bool {
        (isCommon && includesCommon) || includesEvery || explicit.contains(mode)
    }
}

/// The blocks of a loop, which wait for their modes.
///
/// What comes is *fresh*, and most of it is run from there. When a mode runs that is not for all of it, or that other
/// blocks have waited for longer, fresh blocks go to *lanes*: there is one for each set of modes that blocks wait for, in
/// the order in which they came. A block is moved there once. So a mode looks at lanes and never at a block that waits for
/// another mode: what is done for a block costs O(lanes) at most, however many others wait.
///
/// A *batch* is what waits for a mode at one moment. Its lanes are closed while it is being run: what comes meanwhile goes
/// to other lanes, and nobody else sees what is left in these.
struct BlockQueue<Loop: AnyObject>: ~Copyable {
    private var fresh = FIFO<Block<Loop>>()
    /// So many of the first fresh ones are known to be for that mode: what was left of a batch.
    private var known: (count: Int, mode: RunLoop.Mode) = (0, .default)
    /// All of what is fresh is in the batch that has just begun.
    private var isFreshTaken = false

    private var lanes = Buffer<BlockLane<Loop>>()
    /// The lane that was asked for last: the next block is likely to be for the same modes.
    private var lastLane = 0
    /// How many blocks wait in open lanes.
    private var countInLanes = 0
    /// The number of the next block that leaves the fresh ones. They tell the order among lanes.
    private var nextNumber = 0
    /// How many batches are being run, each within a block of the one before.
    private var batchCount = 0

    /// How many blocks wait, without those of batches.
    var count: Int { fresh.count + countInLanes }
    var isEmpty: Bool { fresh.isEmpty && countInLanes == 0 }

    var laneCount: Int { lanes.count }
    /// Empty lanes beyond these are given back.
    static var keptLanes: Int { 8 }

    /// What there is room for.
    var capacity: Int { lanes.indices.reduce(fresh.capacity) { $0 + lanes[$1].blocks.capacity } }

    // MARK: Coming

    @inline(__always)
    mutating func append(_ block: consuming Block<Loop>) {
        fresh.append(block)
    }

    /// Takes all of `blocks`, in order; what it leaves is empty.
    @inline(__always)
    mutating func append(contentsOf blocks: inout FIFO<Block<Loop>>) {
        guard !fresh.isEmpty else { return swap(&fresh, &blocks) }
        while let block = blocks.popFirst() { fresh.append(block) }
    }

    /// Moves what is fresh to its lanes.
    private mutating func sift() {
        countInLanes += fresh.count
        known.count = 0
        while let block = fresh.popFirst() {
            insert(block, nextNumber, batch: 0)
            nextNumber += 1
        }
    }

    private mutating func insert(_ block: consuming Block<Loop>, _ number: Int, batch: Int) {
        let lane = lane(for: block.modes, batch: batch)
        lanes[lane].noteNext(1, from: number)
        lanes[lane].blocks.append(block)
    }

    private mutating func lane(for modes: RunLoop.Modes, batch: Int) -> Int {
        if lastLane < lanes.count, lanes[lastLane].batch == batch, lanes[lastLane].modes == modes { return lastLane }
        lastLane = findLane(for: modes, batch: batch)
        return lastLane
    }

    /// The lane for `modes` in a batch, or the open one: the one that holds blocks for them, or else an empty one.
    @inline(never)
    private mutating func findLane(for modes: RunLoop.Modes, batch: Int) -> Int {
        var free: Int?
        for lane in lanes.indices {
            if lanes[lane].isOpen && lanes[lane].blocks.isEmpty {
                free = lane
            } else if lanes[lane].batch == batch && lanes[lane].modes == modes {
                return lane
            }
        }
        if free == nil { lanes.append(BlockLane(modes)) }
        let lane = free ?? lanes.count - 1
        lanes[lane].modes = modes
        lanes[lane].batch = batch
        return lane
    }

    // MARK: Going

    // Mutating, for the compiler copies the whole of a queue that is a property for a call that is not.
    mutating func hasBlocks(for mode: RunLoop.Mode, isCommon: Bool) -> Bool {
        if !fresh.allSatisfy(from: 0, { !$0.runs(in: mode, isCommon: isCommon) }) { return true }
        guard countInLanes > 0 else { return false }
        for lane in lanes.indices where lanes[lane].isVisible(in: mode, isCommon: isCommon) { return true }
        return false
    }

    /// Takes the only block that waits, if it is for `mode`: it needs no batch, and most blocks come alone.
    @inline(__always)
    mutating func popAlone(for mode: RunLoop.Mode, isCommon: Bool) -> Block<Loop>? {
        guard fresh.count == 1, countInLanes == 0, fresh[0].runs(in: mode, isCommon: isCommon) else { return nil }
        known.count = 0
        nextNumber += 1
        return fresh.popFirst()
    }

    /// Begins a batch: takes what waits for `mode`.
    ///
    /// - Returns: how many blocks that is; if there are none, no batch has begun.
    @inline(__always)
    mutating func beginBatch(of mode: RunLoop.Mode, isCommon: Bool) -> Int {
        isFreshTaken = isFreshOnly(for: mode, isCommon: isCommon)
        guard isFreshTaken else { return beginBatchOfLanes(mode, isCommon: isCommon) }
        batchCount += 1
        return fresh.count
    }

    /// Whether all that waits is fresh, and for `mode`.
    @inline(__always)
    private mutating func isFreshOnly(for mode: RunLoop.Mode, isCommon: Bool) -> Bool {
        // What is known to be for another mode is not looked at from pass to pass.
        guard countInLanes == 0, !fresh.isEmpty, known.count == 0 || known.mode == mode else { return false }
        guard fresh.allSatisfy(from: known.count, { $0.runs(in: mode, isCommon: isCommon) }) else { return false }
        known = (fresh.count, mode)
        return true
    }

    @inline(never)
    private mutating func beginBatchOfLanes(_ mode: RunLoop.Mode, isCommon: Bool) -> Int {
        sift()
        var taken = 0
        for lane in lanes.indices where lanes[lane].isVisible(in: mode, isCommon: isCommon) {
            lanes[lane].batch = batchCount + 1
            taken += lanes[lane].blocks.count
        }
        guard taken > 0 else { return 0 }
        batchCount += 1
        countInLanes -= taken
        return taken
    }

    /// Blocks of a batch that follow one another, lent to be run.
    struct Loan {
        /// The lane that they are from; `nil` for fresh ones.
        var lane: Int?
        /// The number of the first.
        var number: Int
        var count: Int
    }

    /// Lends what comes first in the batch that began last.
    @inline(__always)
    mutating func lendFirst(_ blocks: inout FIFO<Block<Loop>>) -> Loan {
        guard isFreshTaken else { return lendFirstLane(&blocks) }
        isFreshTaken = false
        known.count = 0
        swap(&fresh, &blocks)
        nextNumber += blocks.count
        return Loan(lane: nil, number: nextNumber - blocks.count, count: blocks.count)
    }

    @inline(never)
    private mutating func lendFirstLane(_ blocks: inout FIFO<Block<Loop>>) -> Loan {
        var first = 0
        var (least, holders) = (Int.max, 0)
        for lane in lanes.indices where lanes[lane].batch == batchCount && !lanes[lane].blocks.isEmpty {
            holders += 1
            let number = lanes[lane].stretches[0].lowerBound
            if number < least { (first, least) = (lane, number) }
        }
        let count = holders == 1 ? lanes[first].blocks.count : lanes[first].stretches[0].count
        swap(&lanes[first].blocks, &blocks)
        return Loan(lane: first, number: least, count: count)
    }

    /// Takes back what was lent for a batch of `mode`, of which `done` have been run.
    @inline(__always)
    mutating func takeBack(_ blocks: inout FIFO<Block<Loop>>, _ loan: Loan, done: Int, of mode: RunLoop.Mode) {
        if loan.lane == nil && blocks.isEmpty {
            if fresh.isEmpty && fresh.capacity < blocks.capacity { swap(&fresh, &blocks) }
        } else {
            takeBackRest(&blocks, loan, done, mode)
        }
    }

    @inline(never)
    private mutating func takeBackRest(
        _ blocks: inout FIFO<Block<Loop>>, _ loan: Loan, _ done: Int, _ mode: RunLoop.Mode
    ) {
        if let lane = loan.lane {
            swap(&lanes[lane].blocks, &blocks)
            lanes[lane].noteGone(done)
        } else if countInLanes == 0 {
            // Nothing of what has come meanwhile was sifted: they are the first of the fresh ones again.
            known = (blocks.count, mode)
            while let block = fresh.popFirst() { blocks.append(block) }
            swap(&fresh, &blocks)
        } else {
            var number = loan.number + done
            while let block = blocks.popFirst() {
                insert(block, number, batch: batchCount)
                number += 1
            }
        }
    }

    /// Ends the batch that began last. What is left of it waits again, before everything that came later.
    mutating func endBatch() {
        for lane in lanes.indices where lanes[lane].batch == batchCount {
            lanes[lane].batch = 0
            guard !lanes[lane].blocks.isEmpty else { continue }
            countInLanes += lanes[lane].blocks.count
            takeInLater(lane)
        }
        batchCount -= 1
        while lanes.count > Self.keptLanes, lanes[lanes.count - 1].isOpen, lanes[lanes.count - 1].blocks.isEmpty {
            _ = lanes.removeLast()
        }
    }

    /// Moves what came for the modes of a lane while it was closed behind what is left in it.
    private mutating func takeInLater(_ lane: Int) {
        for later in lanes.indices
        where later != lane && lanes[later].isOpen && lanes[later].modes == lanes[lane].modes {
            while let stretch = lanes[later].takeStretch() {
                lanes[lane].noteNext(stretch.count, from: stretch.lowerBound)
            }
            while let block = lanes[later].blocks.popFirst() { lanes[lane].blocks.append(block) }
        }
        lastLane = lane
    }

    // MARK: Looking at the whole

    /// What waits, in the order in which it came, without what belongs to batches.
    func map<Result>(_ transform: (Block<Loop>) -> Result) -> [Result] {
        var results: [(number: Int, result: Result)] = []
        for lane in lanes.indices where lanes[lane].isOpen {
            let numbers = (0..<lanes[lane].stretches.count).flatMap { lanes[lane].stretches[$0] }
            for (index, number) in numbers.enumerated() {
                results.append((number, transform(lanes[lane].blocks[index])))
            }
        }
        results.sort { $0.number < $1.number }
        return results.map(\.result) + (0..<fresh.count).map { transform(fresh[$0]) }
    }
}

/// The blocks that wait for the same modes.
struct BlockLane<Loop: AnyObject>: ~Copyable {
    var modes: RunLoop.Modes
    var blocks = FIFO<Block<Loop>>()
    /// The numbers of the blocks, in order: few as long as blocks for the same modes follow one another.
    private(set) var stretches = FIFO<Range<Int>>()
    /// The batch that it belongs to; 0 while it is open. Of the lanes for the same modes one at most is open and holds
    /// anything.
    var batch = 0

    init(_ modes: RunLoop.Modes) {
        self.modes = modes
    }

    var isOpen: Bool { batch == 0 }

    /// Whether a run in `mode`, which is one of the common modes or is not, may take from it now.
    func isVisible(in mode: RunLoop.Mode, isCommon: Bool) -> Bool {
        guard isOpen, !blocks.isEmpty else { return false }
        return modes.contain(mode, isCommon: isCommon)
    }

    /// Notes that so many blocks come in, numbered from `number` on.
    @inline(__always)
    mutating func noteNext(_ count: Int, from number: Int) {
        let last = stretches.count - 1
        if last >= 0 && stretches[last].upperBound == number {
            stretches[last] = stretches[last].lowerBound..<number + count
        } else {
            stretches.append(number..<number + count)
        }
    }

    /// Notes that so many blocks have gone from the front.
    mutating func noteGone(_ count: Int) {
        var left = count
        while left > 0 {
            let stretch = stretches[0]
            guard stretch.count <= left else {
                stretches[0] = stretch.lowerBound + left..<stretch.upperBound
                return
            }
            _ = stretches.popFirst()
            left -= stretch.count
        }
    }

    mutating func takeStretch() -> Range<Int>? { stretches.popFirst() }
}
