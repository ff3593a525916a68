internal import CRecording
internal import CShims
internal import Glibc
@_spi(Ports) internal import RunLoopCore

/// The files of a record that is being made, which hand out chunks as memory. Any thread.
final class RecordFile: Sendable {
    /// One of the files.
    private struct Part {
        var number: Int
        var descriptor: Int32
        var head: UnsafeMutableRawPointer
        /// The size of the file.
        var size = RecordLayout.pageSize

        subscript(field: RecordLayout.Field) -> UInt64 {
            get { head.load(fromByteOffset: field.rawValue * 8, as: UInt64.self) }
            nonmutating set { head.storeBytes(of: newValue, toByteOffset: field.rawValue * 8, as: UInt64.self) }
        }
    }

    private struct State {
        var part: Part?
        /// The number of bytes before this part.
        var before = 0
        /// The end in the file.
        var end: RecordEnd?
    }

    let options: RecordingOptions
    private let path: String
    private var chunkSize: Int { options.chunkSize }
    private let wallTime: RunLoop.WallTime
    // Unsafe, because it is a pointer, to an object for any thread.
    private nonisolated(unsafe) let mapped: OpaquePointer
    // Unchecked state behind a lock; its pointer is to memory that stays mapped.
    private let state = Locked(State())

    init(_ path: String, _ options: RecordingOptions, wallTime: RunLoop.WallTime) throws(RecordError) {
        require(options.chunkSize <= RecordLayout.largestChunk, "a chunk has less than a megabyte")
        (self.path, self.options, self.wallTime) = (path, options, wallTime)
        let loss = RecordEnd.noRoom(errno: EIO)
        guard let mapped = rlk_make_mapped_file("\(path): \(loss)\n") else { throw .file(path, errno: ENOMEM) }
        self.mapped = mapped
        rlk_make_hashing_repeatable()
        // Parts of an earlier record would be left over.
        var part = 2
        while unlink(RecordLayout.path(path, part: part)) == 0 { part += 1 }
        switch makePart(1) {
        case .success(let part): state.withLock { $0.part = part }
        case .failure(let reason): throw .file(path, errno: reason.number)
        }
    }

    deinit {
        state.withLock { state in if let part = state.part { drop(part) } }
        rlk_free_mapped_file(mapped)
    }

    // MARK: Parts

    /// An error number of the system.
    private struct Reason: Error {
        var number: Int32
    }

    /// Creates a file anew: an existing one may have another mode, another owner, and a process that still maps it.
    private static func create(_ path: String) -> Result<Int32, Reason> {
        var status = stat()
        if lstat(path, &status) == 0 {
            // Such as a device, or a link to another file.
            guard status.st_mode & S_IFMT == S_IFREG else { return .failure(Reason(number: EEXIST)) }
            unlink(path)
        }
        let descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        // Even if the process's mask removes some bits.
        guard descriptor >= 0, fchmod(descriptor, 0o600) == 0 else { return .failure(Reason(number: errno)) }
        return .success(descriptor)
    }

    private func makePart(_ number: Int) -> Result<Part, Reason> {
        let path = RecordLayout.path(path, part: number)
        return Self.create(path).flatMap { descriptor in
            var status = posix_fallocate(descriptor, 0, off_t(RecordLayout.pageSize))
            if status == 0 {
                switch map(descriptor, at: 0, RecordLayout.pageSize) {
                case .success(let head):
                    let part = Part(number: number, descriptor: descriptor, head: head)
                    describe(part)
                    return .success(part)
                case .failure(let reason): status = reason.number
                }
            }
            Glibc.close(descriptor)
            unlink(path)
            return .failure(Reason(number: status))
        }
    }

    private func drop(_ part: Part) {
        release(UnsafeMutableRawBufferPointer(start: part.head, count: RecordLayout.pageSize))
        Glibc.close(part.descriptor)
    }

    /// Writes the first page.
    private func describe(_ part: Part) {
        let hashing = rlk_get_hashing()
        part[.part] = UInt64(part.number)
        part[.chunkSize] = UInt64(chunkSize)
        part[.process] = UInt64(getpid())
        part[.life] = ProcessLife.sum(of: Int(getpid()))
        part[.wallTime] = UInt64(bitPattern: wallTime.nanoseconds)
        part[.seed0] = hashing.seed0
        part[.seed1] = hashing.seed1
        part[.keepsPayloads] = options.keepsPayloads ? 1 : 0
        part[.keepsOutput] = options.keepsOutput ? 1 : 0
        let arguments = CommandLine.arguments.flatMap { text -> [UInt8] in text.utf8 + [0] }
            .prefix(RecordLayout.pageSize - RecordLayout.argumentsStart)
        part[.argumentsLength] = UInt64(arguments.count)
        (part.head + RecordLayout.argumentsStart).copyMemory(from: Array(arguments), byteCount: arguments.count)
        part[.size] = UInt64(part.size)
        part[.mark] = RecordLayout.mark
        let head = UnsafeRawBufferPointer(start: part.head, count: RecordLayout.pageSize)
        part[.check] = RecordLayout.check(ofHead: head, argumentsLength: arguments.count)
    }

    // MARK: Memory

    private func map(_ descriptor: Int32, at offset: Int, _ size: Int) -> Result<UnsafeMutableRawPointer, Reason> {
        guard let memory = mmap(nil, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, off_t(offset)),
            memory != MAP_FAILED
        else { return .failure(Reason(number: errno)) }
        // A program that shortens the file must not end the process.
        let status = rlk_guard_mapping(mapped, memory, size)
        guard status == 0 else {
            munmap(memory, size)
            return .failure(Reason(number: status))
        }
        return .success(memory)
    }

    func release(_ memory: UnsafeMutableRawBufferPointer) {
        rlk_unguard_mapping(memory.baseAddress!)
        munmap(memory.baseAddress, memory.count)
    }

    // MARK: Chunks

    /// Returns the memory for the last chunk of a tape; `nil` once the limit is reached or the system has no room.
    func makeTail(tape: UInt32) -> UnsafeMutableRawBufferPointer? {
        var tail: UnsafeMutableRawBufferPointer?
        takePlace { descriptor, place in
            // Allocated now: a page that the file system has no room for would be lost later.
            let status = posix_fallocate(descriptor, off_t(place), off_t(chunkSize))
            guard status == 0 else { return status }
            switch map(descriptor, at: place, chunkSize) {
            case .failure(let reason): return reason.number
            case .success(let memory):
                let words = memory.assumingMemoryBound(to: UInt64.self)
                words[RecordLayout.ChunkField.tape.rawValue] = UInt64(tape)
                let state = ChunkState(number: 0, used: RecordLayout.chunkHead, sum: TapeCheck(ofTape: tape).short)
                words[RecordLayout.ChunkField.state.rawValue] = state.word
                words[RecordLayout.ChunkField.mark.rawValue] = RecordLayout.tailMark
                tail = UnsafeMutableRawBufferPointer(start: memory, count: chunkSize)
                return 0
            }
        }
        return tail
    }

    /// Copies a full tail behind the others.
    ///
    /// The copy is written, and not mapped as well: the faults of fresh pages were 9 % of the processor time of a
    /// daemon with many requests.
    func append(_ tail: UnsafeMutableRawBufferPointer) -> Bool {
        takePlace { descriptor, place in
            var mark = RecordLayout.chunkMark
            let markSize = MemoryLayout<UInt64>.size
            return withUnsafeMutableBytes(of: &mark) { mark in
                let parts = [
                    iovec(iov_base: mark.baseAddress, iov_len: markSize),
                    iovec(iov_base: tail.baseAddress! + markSize, iov_len: tail.count - markSize),
                ]
                let count = pwritev(descriptor, parts, 2, off_t(place))
                if count == tail.count { return 0 }
                // Part of the chunk used up the last room.
                return count < 0 ? errno : ENOSPC
            }
        }
    }

    /// Calls `use` to fill a place for one more chunk. If there is none, or `use` returns an error number, the record
    /// ends.
    @discardableResult
    private func takePlace(_ use: (_ descriptor: Int32, _ place: Int) -> Int32) -> Bool {
        let (isTaken, end) = state.withLock { state -> (Bool, RecordEnd?) in
            guard state.end == nil else { return (false, nil) }
            if let end = makeRoom(&state) { return (false, note(end, &state)) }
            let reason = use(state.part!.descriptor, state.part!.size)
            guard reason == 0 else { return (false, note(.noRoom(errno: reason), &state)) }
            state.part!.size += chunkSize
            state.part![.size] = UInt64(state.part!.size)
            return (true, nil)
        }
        if let end { report(end) }
        return isTaken
    }

    /// Begins another part if the present one is full.
    ///
    /// - Returns: the end, if there is no place for one more chunk.
    private func makeRoom(_ state: inout State) -> RecordEnd? {
        if rlk_is_lost(mapped) != 0 { return .noRoom(errno: EIO) }
        let part = state.part!
        if part.size > RecordLayout.pageSize, part.size + chunkSize > options.partSize {
            switch makePart(part.number + 1) {
            case .failure(let reason): return .noRoom(errno: reason.number)
            case .success(let next):
                part[.isContinued] = 1
                drop(part)
                state.before += part.size
                state.part = next
            }
        }
        return state.before + state.part!.size + chunkSize <= options.limit ? nil : .limit
    }

    // MARK: The end

    private func note(_ end: RecordEnd, _ state: inout State) -> RecordEnd {
        state.end = end
        state.part![.end] = end.word
        return end
    }

    /// Reports why nothing more is recorded. A lost file was reported when it was lost.
    private func report(_ end: RecordEnd) {
        guard rlk_is_lost(mapped) == 0 else { return }
        _ = "\(path): \(end)\n".withCString { write(STDERR_FILENO, $0, strlen($0)) }
    }

    /// Closes the record at the end of the program.
    func close() {
        state.withLock { state in
            if state.end == nil { _ = note(rlk_is_lost(mapped) != 0 ? .noRoom(errno: EIO) : .closed, &state) }
        }
    }

    /// Counts a call from a thread that has no tape.
    func noteForeignCall() {
        state.withLock { $0.part![.foreignCalls] += 1 }
    }
}
