/// Blocks, grouped by the modes that they wait for.
struct BlockLanes<Loop: AnyObject>: ~Copyable {
    struct Lane: ~Copyable {
        var modes: RunLoop.Modes
        var blocks = FIFO<(number: Int, block: Block<Loop>)>()

        func isEmpty(for mode: RunLoop.Mode, isCommon: Bool) -> Bool {
            blocks.isEmpty || !modes.contain(mode, isCommon: isCommon)
        }
    }

    private(set) var lanes = Buffer<Lane>()
    /// The lane that was used last: the next block is likely to be for the same modes.
    private var lastLane = 0
    private(set) var blockCount = 0

    /// The number of lanes kept; empty lanes beyond it are given back.
    static var keptLanes: Int { 8 }

    var isUnused: Bool { lanes.isEmpty }
    var capacity: Int { lanes.indices.reduce(0) { $0 + lanes[$1].blocks.capacity } }

    /// Appends a block to its lane; `number` is greater than every number in the lanes.
    mutating func append(_ block: consuming Block<Loop>, number: Int) {
        let lane = lane(for: block.modes)
        assert(
            lanes[lane].blocks.isEmpty || lanes[lane].blocks[lanes[lane].blocks.count - 1].number < number,
            "a block is older than the one before it in its lane")
        lanes[lane].blocks.append((number, block))
        blockCount += 1
    }

    private mutating func lane(for modes: RunLoop.Modes) -> Int {
        if lastLane >= lanes.count || lanes[lastLane].modes != modes { lastLane = findLane(for: modes) }
        return lastLane
    }

    /// Returns the lane for `modes`, or else makes an empty one its lane.
    private mutating func findLane(for modes: RunLoop.Modes) -> Int {
        var free: Int?
        for lane in lanes.indices {
            if lanes[lane].modes == modes { return lane }
            if lanes[lane].blocks.isEmpty { free = lane }
        }
        if free == nil { lanes.append(Lane(modes: modes)) }
        let lane = free ?? lanes.count - 1
        assert(lanes[lane].blocks.isEmpty, "a lane with blocks was given to other modes")
        lanes[lane].modes = modes
        return lane
    }

    func hasBlocks(for mode: RunLoop.Mode, isCommon: Bool) -> Bool {
        blockCount > 0 && lanes.indices.contains { !lanes[$0].isEmpty(for: mode, isCommon: isCommon) }
    }

    /// Takes the block with the least number. The lanes must not be empty.
    @inline(never)
    mutating func popFirst() -> Block<Loop> {
        var first = 0
        var least = Int.max
        for lane in lanes.indices where !lanes[lane].blocks.isEmpty && lanes[lane].blocks[0].number < least {
            (first, least) = (lane, lanes[lane].blocks[0].number)
        }
        assert(least < Int.max && blockCount > 0, "the lanes have lost count of their blocks")
        blockCount -= 1
        return lanes[first].blocks.popFirst()!.block
    }

    /// Moves the blocks that wait for `mode` to `others`, which must be empty.
    mutating func moveBlocks(for mode: RunLoop.Mode, isCommon: Bool, to others: inout BlockLanes) {
        assert(others.blockCount == 0, "blocks of another batch are in the way")
        for lane in lanes.indices where !lanes[lane].isEmpty(for: mode, isCommon: isCommon) {
            let count = lanes[lane].blocks.count
            let other = others.lane(for: lanes[lane].modes)
            assert(others.lanes[other].blocks.isEmpty, "two lanes are for the same modes")
            swap(&lanes[lane].blocks, &others.lanes[other].blocks)
            others.blockCount += count
            blockCount -= count
        }
    }

    /// Takes all blocks of `others`, and puts each before the blocks here that wait for the same modes.
    mutating func putBack(_ others: inout BlockLanes) {
        for other in others.lanes.indices where !others.lanes[other].blocks.isEmpty {
            let lane = lane(for: others.lanes[other].modes)
            assert(
                lanes[lane].blocks.isEmpty
                    || others.lanes[other].blocks[others.lanes[other].blocks.count - 1].number
                        < lanes[lane].blocks[0].number,
                "a block that was put back is younger than one that waited here")
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

    /// Returns the transformed blocks, in order of their numbers.
    func map<Result>(_ transform: (Block<Loop>) -> Result) -> [Result] {
        let all = lanes.indices.flatMap { lane in (0..<lanes[lane].blocks.count).map { lanes[lane].blocks[$0] } }
        return all.ordered { $0.number < $1.number }.map { transform($0.block) }
    }

    /// Traps unless the lanes differ, are in order, and agree with the count.
    func checkInvariants() {
        var total = 0
        for lane in lanes.indices {
            total += lanes[lane].blocks.count
            for index in 1..<max(1, lanes[lane].blocks.count) {
                let isLater = lanes[lane].blocks[index - 1].number < lanes[lane].blocks[index].number
                precondition(isLater, "a lane of blocks is out of order")
            }
            guard !lanes[lane].blocks.isEmpty else { continue }
            let isDouble = (0..<lane).contains { other in
                !lanes[other].blocks.isEmpty && lanes[other].modes == lanes[lane].modes
            }
            precondition(!isDouble, "two lanes of blocks are for the same modes")
        }
        precondition(total == blockCount, "the lanes have lost count of their blocks")
    }
}
