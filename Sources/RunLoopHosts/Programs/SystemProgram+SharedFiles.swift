internal import CPrograms
internal import CShims
internal import Glibc
@_spi(Ports) internal import RunLoopSimulation
@_spi(Ports) internal import RunLoopUnix

/// The calls of a program about files that others use as well: locks of parts, and mappings.
extension SystemProgram {
    // MARK: Locks

    /// Locks a whole file as `flock` does.
    func lock(_ file: OpenFile, _ request: Request) -> Int64 {
        let operation = Int32(truncatingIfNeeded: request.arguments.1)
        let isShared = operation & ~LOCK_NB == LOCK_SH
        guard isShared || operation & ~LOCK_NB == LOCK_EX else { return -Int64(EINVAL) }
        var result = result(file.lock(isShared: isShared))
        guard operation & LOCK_NB == 0 else { return result }
        while result == -Int64(EAGAIN) {
            let waited = rest(request.slot, for: -1, at: [file.node.locks]) { file.mayLock(isShared: isShared) }
            guard waited == 0 else { return waited }
            result = self.result(file.lock(isShared: isShared))
        }
        return result
    }

    func lockPart(_ file: OpenFile, _ request: Request) -> Int64 {
        let asked = request.bytes.loadUnaligned(as: rlk_part_lock.self)
        let use = UInt32(bitPattern: asked.use) & ~rlk_lock_of_file.rawValue
        let belongsToFile = use != UInt32(bitPattern: asked.use)
        let isShared = asked.kind == Int32(F_RDLCK)
        guard let part = part(of: file, asked), 0...2 ~= asked.kind else { return -Int64(EINVAL) }
        let owner = belongsToFile ? ObjectIdentifier(file) : ObjectIdentifier(process)
        let lock = PartLocks.Lock(
            owner: owner, process: belongsToFile ? -1 : process.processIdentifier, isShared: isShared, part: part)
        let locks = file.node.partLocks
        let isRelease = asked.kind == Int32(F_UNLCK)
        if use == rlk_lock_asks.rawValue {
            // An open file that asks for no lock is told of its own.
            guard belongsToFile ? asked.process == 0 : !isRelease else { return -Int64(EINVAL) }
            return tell(of: isRelease ? locks.first(of: owner, in: part) : locks.conflict(with: lock), asked, request)
        }
        guard isRelease || (isShared ? file.isReadable : file.isWritable) else { return -Int64(EBADF) }
        guard !belongsToFile || asked.process == 0 else { return -Int64(EINVAL) }
        guard !isRelease else {
            locks.release(part, of: owner)
            return 0
        }
        if use == rlk_lock_waits.rawValue {
            let waited = rest(request.slot, for: -1, at: [locks]) { locks.conflict(with: lock) == nil }
            guard waited == 0 else { return waited }
        }
        guard locks.conflict(with: lock) == nil else { return -Int64(EAGAIN) }
        locks.add(lock)
        return 0
    }

    /// Returns the bytes of a lock; `nil` if there are none such.
    private func part(of file: OpenFile, _ lock: rlk_part_lock) -> Range<Int>? {
        let origin: Int
        switch lock.origin {
        case SEEK_SET: origin = 0
        case SEEK_CUR: origin = file.place
        case SEEK_END: origin = (file.node as? FileNode)?.content.count ?? 0
        default: return nil
        }
        let (start, length) = (origin &+ Int(lock.start), Int(lock.length))
        let (low, high) = length < 0 ? (start &+ length, start) : (start, length == 0 ? .max : start &+ length)
        return low >= 0 && low < high ? low..<high : nil
    }

    private func tell(of conflict: PartLocks.Lock?, _ asked: rlk_part_lock, _ request: Request) -> Int64 {
        var answer = asked
        answer.kind = Int32(F_UNLCK)
        if let conflict {
            let isEndless = conflict.part.upperBound == .max
            answer = rlk_part_lock(
                kind: Int32(conflict.isShared ? F_RDLCK : F_WRLCK), origin: SEEK_SET,
                start: Int64(conflict.part.lowerBound), length: isEndless ? 0 : Int64(conflict.part.count),
                process: conflict.process, use: asked.use)
        }
        withUnsafeBytes(of: answer) { request.set($0) }
        return 0
    }

    // MARK: Mappings

    /// Returns the descriptor of memory with the file's content, which the program may map with a protection.
    func share(_ file: OpenFile, _ protection: Int32) -> Int64 {
        guard let node = file.node as? FileNode else { return -Int64(ENODEV) }
        guard file.isReadable, file.isWritable || protection & PROT_WRITE == 0 else { return -Int64(EACCES) }
        return node.map().map(Int64.init) ?? -Int64(ENOMEM)
    }

    func noteMapping(of node: DiskNode, at address: UInt, _ length: Int) {
        let place = address..<address + UInt(max(0, length))
        mappings.removeAll { $0.place.overlaps(place) }
        mappings.append((place, node))
    }

    func syncMemory(at address: UInt, _ length: Int) -> Int64 {
        let place = address..<address + UInt(max(0, length))
        for mapping in mappings where mapping.place.overlaps(place) {
            do throws(Refusal) { try process.machine.disk.sync(mapping.node) } catch { return -Int64(error.reason) }
        }
        return 0
    }
}
