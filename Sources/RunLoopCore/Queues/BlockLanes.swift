/// Blocks by the modes that they wait for.
struct BlockLanes<Loop: AnyObject>: ~Copyable {
    struct Lane: ~Copyable {
        var modes: RunLoop.Modes
        var blocks = FIFO<(number: Int, block: Block<Loop>)>()

        func isEmpty(for mode: RunLoop.Mode, isCommon: Bool) -> Bool {
            blocks.isEmpty || !modes.contain(mode, isCommon: isCommon)
        }
    }

    private(set) var lanes = Buffer<Lane>()
    /// The lane that was asked for last: the next block is likely to be for the same modes.
    private var lastLane = 0
    private(set) var blockCount = 0

    /// Empty lanes beyond these are given back.
    static var keptLanes: Int { 8 }

    var isUnused: Bool { lanes.isEmpty }
    var capacity: Int { lanes.indices.reduce(0) { $0 + lanes[$1].blocks.capacity } }

    /// Appends a block to its lane; `number` is greater than all that are there.
    mutating func append(_ block: consuming Block<Loop>, number: Int) {
        let lane = lane(for: block.modes)
        lanes[lane].blocks.append((number, block))
        blockCount += 1
    }

    private mutating func lane(for modes: RunLoop.Modes) -> Int {
        if lastLane >= lanes.count || lanes[lastLane].modes != modes { lastLane = findLane(for: modes) }
        return lastLane
    }

    /// The lane for `modes`, or else an empty one.
    private mutating func findLane(for modes: RunLoop.Modes) -> Int {
        var free: Int?
        for lane in lanes.indices {
            if lanes[lane].modes == modes { return lane }
            if lanes[lane].blocks.isEmpty { free = lane }
        }
        if free == nil { lanes.append(Lane(modes: modes)) }
        let lane = free ?? lanes.count - 1
        lanes[lane].modes = modes
        return lane
    }

    func hasBlocks(for mode: RunLoop.Mode, isCommon: Bool) -> Bool {
        blockCount > 0 && lanes.indices.contains { !lanes[$0].isEmpty(for: mode, isCommon: isCommon) }
    }

    /// Takes the block with the least number; there is one.
    @inline(never)
    mutating func popFirst() -> Block<Loop> {
        var first = 0
        var least = Int.max
        for lane in lanes.indices where !lanes[lane].blocks.isEmpty && lanes[lane].blocks[0].number < least {
            (first, least) = (lane, lanes[lane].blocks[0].number)
        }
        blockCount -= 1
        return lanes[first].blocks.popFirst()!.block
    }

    /// Moves the blocks that wait for `mode` to `others`, which hold nothing.
    mutating func moveBlocks(for mode: RunLoop.Mode, isCommon: Bool, to others: inout BlockLanes) {
        for lane in lanes.indices where !lanes[lane].isEmpty(for: mode, isCommon: isCommon) {
            let count = lanes[lane].blocks.count
            let other = others.lane(for: lanes[lane].modes)
            swap(&lanes[lane].blocks, &others.lanes[other].blocks)
            others.blockCount += count
            blockCount -= count
        }
    }

    /// Takes all blocks of `others`; they came before those for the same modes that are here.
    mutating func putBack(_ others: inout BlockLanes) {
        for other in others.lanes.indices where !others.lanes[other].blocks.isEmpty {
            let lane = lane(for: others.lanes[other].modes)
            while let block = lanes[lane].blocks.popFirst() { others.lanes[other].blocks.append(block) }
            swap(&lanes[lane].blocks, &others.lanes[other].blocks)
        }
        blockCount += others.blockCount
        others.blockCount = 0
        giveBackMemory()
        others.giveBackMemory()
    }

    private mutating func giveBackMemory() {
        while lanes.count > Self.keptLanes, lanes[lanes.count - 1].blocks.isEmpty { _ = lanes.removeLast() }
    }

    /// All, in order.
    func map<Result>(_ transform: (Block<Loop>) -> Result) -> [Result] {
        let all = lanes.indices.flatMap { lane in (0..<lanes[lane].blocks.count).map { lanes[lane].blocks[$0] } }
        return all.ordered { $0.number < $1.number }.map { transform($0.block) }
    }
}
