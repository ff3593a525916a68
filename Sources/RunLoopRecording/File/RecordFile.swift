internal import CRecording
internal import Glibc
internal import RunLoopCore

/// The files of a record that is being made. Chunks of them are handed out as memory. Any thread.
final class RecordFile: Sendable {
    private struct State {
        var descriptor: Int32 = -1
        var part = 0
        /// Where the file ends, and how much there was before it.
        var end = 0
        var before = 0
        var isFull = false
        var head: UnsafeMutableRawPointer?
    }

    let options: RecordingOptions
    private let path: String
    private var chunkSize: Int { options.chunkSize }
    private let wallTime: RunLoop.WallTime
    // Unchecked state behind a lock; the pointer in it is to memory that stays mapped.
    private let state = Locked(State())

    init(_ path: String, _ options: RecordingOptions, wallTime: RunLoop.WallTime) throws(RecordError) {
        (self.path, self.options, self.wallTime) = (path, options, wallTime)
        rlk_make_hashing_repeatable()
        // Parts of an earlier record would be taken for some of this one.
        var part = 2
        while unlink(RecordLayout.path(path, part: part)) == 0 { part += 1 }
        let reason = state.withLock { beginPart(&$0) }
        if let reason { throw .file(path, errno: reason) }
    }

    deinit {
        state.withLock { state in
            if state.descriptor >= 0 { close(state.descriptor) }
            if let head = state.head { munmap(head, RecordLayout.pageSize) }
        }
    }

    /// - Returns: the system's reason if it fails.
    private func beginPart(_ state: inout State) -> Int32? {
        if state.descriptor >= 0 { close(state.descriptor) }
        if let head = state.head { munmap(head, RecordLayout.pageSize) }
        (state.descriptor, state.head) = (-1, nil)
        state.part += 1
        state.before += state.end
        state.end = RecordLayout.pageSize
        let descriptor = open(
            RecordLayout.path(path, part: state.part), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { return errno }
        state.descriptor = descriptor
        let status = posix_fallocate(descriptor, 0, off_t(RecordLayout.pageSize))
        guard status == 0 else { return status }
        guard let head = map(descriptor, at: 0, RecordLayout.pageSize) else { return errno }
        state.head = head
        let hashing = rlk_get_hashing()
        let words = head.assumingMemoryBound(to: UInt64.self)
        func set(_ field: RecordLayout.Field, _ value: UInt64) { words[field.rawValue] = value }
        set(.mark, RecordLayout.mark)
        set(.part, UInt64(state.part))
        set(.chunkSize, UInt64(chunkSize))
        set(.process, UInt64(getpid()))
        set(.wallTime, UInt64(bitPattern: wallTime.nanoseconds))
        set(.seed0, hashing.seed0)
        set(.seed1, hashing.seed1)
        set(.keepsPayloads, options.keepsPayloads ? 1 : 0)
        set(.keepsOutput, options.keepsOutput ? 1 : 0)
        let arguments = CommandLine.arguments.flatMap { text -> [UInt8] in text.utf8 + [0] }
            .prefix(RecordLayout.pageSize - RecordLayout.argumentsStart)
        set(.argumentsLength, UInt64(arguments.count))
        (head + RecordLayout.argumentsStart).copyMemory(from: Array(arguments), byteCount: arguments.count)
        return nil
    }

    private func map(_ descriptor: Int32, at offset: Int, _ size: Int) -> UnsafeMutableRawPointer? {
        let memory = mmap(nil, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, off_t(offset))
        return memory == MAP_FAILED ? nil : memory
    }

    /// The memory for the last chunk of a tape; `nil` if the limit is reached or the system has no room. From then on there is
    /// none.
    func makeTail(tape: UInt32) -> UnsafeMutableRawBufferPointer? {
        state.withLock { state in
            guard let place = takePlace(&state) else { return nil }
            state.isFull = true
            // Allocated now: a page that the file system has no room for would end the process later.
            guard posix_fallocate(state.descriptor, off_t(place), off_t(chunkSize)) == 0,
                let memory = map(state.descriptor, at: place, chunkSize)
            else { return nil }
            state.isFull = false
            let words = memory.assumingMemoryBound(to: UInt64.self)
            words[RecordLayout.ChunkField.tape.rawValue] = UInt64(tape)
            words[RecordLayout.ChunkField.numberAndUsed.rawValue] = UInt64(RecordLayout.chunkHead)
            words[RecordLayout.ChunkField.mark.rawValue] = RecordLayout.tailMark
            return UnsafeMutableRawBufferPointer(start: memory, count: chunkSize)
        }
    }

    /// Copies a tail that is full behind the others.
    ///
    /// Written, and not mapped as well: the faults of fresh pages were 9 % of the processor time of a daemon with many requests.
    func append(_ tail: UnsafeMutableRawBufferPointer) -> Bool {
        state.withLock { state in
            guard let place = takePlace(&state) else { return false }
            var mark = RecordLayout.chunkMark
            let markSize = MemoryLayout<UInt64>.size
            state.isFull = withUnsafeMutableBytes(of: &mark) { mark in
                let parts = [
                    iovec(iov_base: mark.baseAddress, iov_len: markSize),
                    iovec(iov_base: tail.baseAddress! + markSize, iov_len: tail.count - markSize),
                ]
                return pwritev(state.descriptor, parts, 2, off_t(place)) != tail.count
            }
            return !state.isFull
        }
    }

    /// A place for one more chunk; `nil` if there is none.
    private func takePlace(_ state: inout State) -> Int? {
        guard !state.isFull else { return nil }
        state.isFull = true
        if state.end > RecordLayout.pageSize, state.end + chunkSize > options.partSize, beginPart(&state) != nil {
            return nil
        }
        guard state.before + state.end + chunkSize <= options.limit else { return nil }
        state.isFull = false
        defer { state.end += chunkSize }
        return state.end
    }

    /// A thread that has no tape has asked for something.
    func noteForeignCall() {
        state.withLock { state in
            guard let head = state.head else { return }
            head.assumingMemoryBound(to: UInt64.self)[RecordLayout.Field.foreignCalls.rawValue] += 1
        }
    }
}
