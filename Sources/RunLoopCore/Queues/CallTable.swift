internal import Glibc

/// The calls of a timer queue, in chunks of slots that never move, so that heaps can refer to them by their addresses.
///
/// The number of a slot consists of its chunk's number, and its own in the lowest 9 bits. Inserting and removing are
/// O(1) and take memory only for a new chunk. An empty chunk is given back.
struct CallTable: ~Copyable {
    typealias Reference = UnsafeMutablePointer<CallSlot>

    private struct Chunk {
        /// The memory, which begins with the chunk's number; `nil` while none of its slots is in use.
        var memory: UnsafeMutableRawPointer?
        /// The next chunk that has a free slot.
        var nextWithRoom: Int32 = -1
        /// The numbers of slots that have been in use at any time, and that are in use now.
        var touched: Int16 = 0
        var used: Int16 = 0
        var firstFree: Int16 = -1
    }

    // Unsafe: a slot finds its chunk by its own address, and so need not store its number. A chunk takes a whole block
    // of the allocator, with the allocator's header in front of it, so that chunks lie next to each other.
    private static let chunkAlignment = 1 << 14
    private static let chunkBytes = chunkAlignment - 16
    private static let slotOffset = 16
    private static let slotsOfChunk = Int16((chunkBytes - slotOffset) / MemoryLayout<CallSlot>.stride)

    private var chunks = Buffer<Chunk>()
    private var firstWithRoom: Int32 = -1

    deinit {
        forEach { $0.deinitialize(count: 1) }
        for index in chunks.indices { free(chunks[index].memory) }
    }

    @inline(__always)
    private static func slot(_ index: Int16, of memory: UnsafeMutableRawPointer) -> Reference {
        assert(index >= 0 && index < slotsOfChunk, "a slot is not in its chunk")
        return (memory + slotOffset).assumingMemoryBound(to: CallSlot.self) + Int(index)
    }

    @inline(__always)
    mutating func insert(
        _ block: consuming @escaping () -> Void, _ label: CallLabel, _ origin: RunLoop.Origin, at date: RunLoop.Instant,
        lane: Int, order: UInt64
    ) -> (slot: Reference, token: CallToken) {
        if firstWithRoom < 0 || chunks[Int(firstWithRoom)].memory == nil { makeRoom() }
        let number = firstWithRoom
        let chunk = chunks.base + Int(number)
        let memory = chunk.pointee.memory.unsafelyUnwrapped
        var index = chunk.pointee.firstFree
        let slot: Reference
        if index >= 0 {
            slot = Self.slot(index, of: memory)
            chunk.pointee.firstFree = Int16(truncatingIfNeeded: slot.pointee.index)
        } else {
            index = chunk.pointee.touched
            slot = Self.slot(index, of: memory)
            slot.initialize(to: CallSlot())
            chunk.pointee.touched += 1
        }
        chunk.pointee.used += 1
        assert(chunk.pointee.used <= chunk.pointee.touched, "a chunk has lost count of its slots")
        if chunk.pointee.used == Self.slotsOfChunk { firstWithRoom = chunk.pointee.nextWithRoom }
        slot.pointee.fill(consume block, label, origin, at: date, lane: lane, order: order)
        let place = UInt32(truncatingIfNeeded: number) << 9 | UInt32(truncatingIfNeeded: index)
        return (slot, CallToken(slot: place, version: slot.pointee.version))
    }

    /// Returns the slot of a call that has not been taken out.
    @inline(__always)
    func find(_ token: CallToken) -> Reference? {
        let number = Int(token.slot >> 9)
        let index = Int16(token.slot & 511)
        guard number < chunks.count, let memory = chunks[number].memory, index < chunks[number].touched else {
            return nil
        }
        let slot = Self.slot(index, of: memory)
        return slot.pointee.version == token.version && slot.pointee.block != nil ? slot : nil
    }

    func token(of slot: Reference) -> CallToken {
        let address = UInt(bitPattern: slot)
        let memory = UnsafeRawPointer(bitPattern: address & ~UInt(Self.chunkAlignment - 1)).unsafelyUnwrapped
        let index = ((Int(address) & (Self.chunkAlignment - 1)) - Self.slotOffset) / MemoryLayout<CallSlot>.stride
        let number = memory.load(as: UInt32.self) << 9 | UInt32(truncatingIfNeeded: index)
        assert(
            chunks[Int(number >> 9)].memory == UnsafeMutableRawPointer(mutating: memory), "a slot is not of this table")
        return CallToken(slot: number, version: slot.pointee.version)
    }

    /// Takes out a call. The caller releases the block.
    @inline(__always)
    mutating func remove(_ slot: Reference, _ token: CallToken) -> (() -> Void)? {
        assert(self.token(of: slot) == token, "a token is not of the slot that is freed")
        let block = slot.pointee.block.take()
        let number = Int32(token.slot >> 9)
        let chunk = chunks.base + Int(number)
        assert(chunk.pointee.used > 0, "a slot of an empty chunk was freed")
        slot.pointee.index = Int32(chunk.pointee.firstFree)
        chunk.pointee.firstFree = Int16(token.slot & 511)
        if chunk.pointee.used == Self.slotsOfChunk {
            chunk.pointee.nextWithRoom = firstWithRoom
            firstWithRoom = number
        }
        chunk.pointee.used -= 1
        // One empty chunk stays, so that a program with a single call at a time does not allocate.
        if chunk.pointee.used == 0 && number != firstWithRoom { giveBack(chunk) }
        return block
    }

    private func giveBack(_ chunk: UnsafeMutablePointer<Chunk>) {
        assert(chunk.pointee.used == 0, "a chunk is given back while a call waits in it")
        free(chunk.pointee.memory)
        chunk.pointee.memory = nil
        (chunk.pointee.touched, chunk.pointee.firstFree) = (0, -1)
    }

    @inline(never)
    private mutating func makeRoom() {
        if firstWithRoom < 0 {
            firstWithRoom = Int32(chunks.count)
            chunks.append(Chunk())
        }
        var memory: UnsafeMutableRawPointer?
        let status = posix_memalign(&memory, Self.chunkAlignment, Self.chunkBytes)
        require(status == 0, "there is no memory left for another delayed call")
        memory!.storeBytes(of: UInt32(firstWithRoom), as: UInt32.self)
        assert(chunks[Int(firstWithRoom)].memory == nil, "the memory of a chunk is lost")
        chunks[Int(firstWithRoom)].memory = memory
    }

    /// Calls `body` with every slot that is in use.
    func forEach(_ body: (Reference) -> Void) {
        for index in chunks.indices {
            guard let memory = chunks[index].memory else { continue }
            for index in 0..<chunks[index].touched {
                let slot = Self.slot(index, of: memory)
                if slot.pointee.block != nil || slot.pointee.isBeingCalled { body(slot) }
            }
        }
    }

    /// Traps unless each chunk knows its slots in use and its free ones, and each slot finds its chunk.
    func checkInvariants() {
        for number in chunks.indices {
            guard let memory = chunks[number].memory else {
                precondition(chunks[number].used == 0, "a chunk without memory has calls")
                continue
            }
            precondition(memory.load(as: UInt32.self) == number, "a chunk does not know its number")
            var (used, free) = (0, 0)
            for index in 0..<chunks[number].touched {
                let slot = Self.slot(index, of: memory)
                if slot.pointee.block != nil || slot.pointee.isBeingCalled { used += 1 }
            }
            var next = chunks[number].firstFree
            while next >= 0 {
                free += 1
                precondition(free <= chunks[number].touched, "the free slots of a chunk are a ring")
                next = Int16(truncatingIfNeeded: Self.slot(next, of: memory).pointee.index)
            }
            precondition(used == chunks[number].used, "a chunk has lost count of its calls")
            precondition(used + free == chunks[number].touched, "a slot is neither in use nor free")
        }
    }
}
