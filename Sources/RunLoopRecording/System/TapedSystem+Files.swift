internal import Glibc
internal import RunLoopCore
internal import RunLoopUnix

extension TapedSystem {
    // MARK: Paths of sockets

    func socketFile(at path: String) -> SocketFile? {
        call(.socketFile, [.text(path)], .optional(.socketFile)) { real.socketFile(at: path) }
    }

    func setPermissions(_ permissions: UInt32, of descriptor: Int32) -> Int32 {
        call(.setPermissions, [.number(Int(permissions)), .number(descriptor)], .int32) {
            real.setPermissions(permissions, of: descriptor)
        }
    }

    func setPermissions(_ permissions: UInt32, at path: String) -> Int32 {
        call(.setPermissionsAt, [.number(Int(permissions)), .text(path)], .int32) {
            real.setPermissions(permissions, at: path)
        }
    }

    // MARK: Files

    func open(_ path: String, flags: Int32) -> Int32 {
        call(.open, [.text(path), .number(flags)], .int32) { real.open(path, flags: flags) }
    }

    func lock(_ descriptor: Int32) -> Int32 { call(.lock, descriptor, .int32, real.lock) }

    func unlock(_ descriptor: Int32) { call(.unlock, descriptor, .none, real.unlock) }

    func leads(_ path: String, to descriptor: Int32) -> Bool {
        call(.leads, [.text(path), .number(descriptor)], .bool) { real.leads(path, to: descriptor) }
    }

    func read(_ descriptor: Int32, into room: UnsafeMutableRawBufferPointer, at offset: Int) -> Int {
        guard let tape = Tape.current else {
            return tapes.callWithoutTape("read(\(descriptor))") { real.read(descriptor, into: room, at: offset) }
        }
        return tape.read(.readAt, descriptor, at: offset, into: room) {
            real.read(descriptor, into: room, at: offset)
        }
    }

    func write(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, at offset: Int) -> Int {
        guard let tape = Tape.current else {
            return tapes.callWithoutTape("write(\(descriptor))") { real.write(descriptor, bytes, at: offset) }
        }
        return tape.write(.writeAt, descriptor, at: offset, bytes) { real.write(descriptor, bytes, at: offset) }
    }

    func truncate(_ descriptor: Int32, to length: Int) -> Int32 {
        call(.truncate, [.number(descriptor), .number(length)], .int32) { real.truncate(descriptor, to: length) }
    }

    func sync(_ descriptor: Int32) -> Int32 { call(.sync, descriptor, .int32, real.sync) }

    func map(_ descriptor: Int32) -> UnsafeRawBufferPointer? {
        let coding = Coding<UnsafeRawBufferPointer?>.mapped(keepsPayloads: tapes.keepsPayloads)
        let contents = call(.map, descriptor, coding, real.map)
        if contents?.isEmpty == false { tapes.needPayload() }
        return contents
    }

    func unmap(_ contents: UnsafeRawBufferPointer) {
        // A replay has memory of its own.
        if isReplay { contents.deallocate() } else { real.unmap(contents) }
    }

    func contentsOfFile(_ path: String, upTo most: Int) -> [UInt8]? {
        let coding = Coding<[UInt8]?>.optional(tapes.keepsPayloads ? .bytes : .digest)
        let bytes = call(.contentsOfFile, [.text(path), .number(most)], coding) {
            real.contentsOfFile(path, upTo: most)
        }
        if bytes != nil { tapes.needPayload() }
        return bytes
    }

    func exists(_ path: String) -> Bool { call(.exists, [.text(path)], .bool) { real.exists(path) } }

    func rename(_ path: String, to newPath: String) -> Int32 {
        call(.rename, [.text(path), .text(newPath)], .int32) { real.rename(path, to: newPath) }
    }

    func removeFile(at path: String) -> Int32 {
        call(.removeFile, [.text(path)], .int32) { real.removeFile(at: path) }
    }

    func createDirectory(_ path: String) -> Int32 {
        call(.createDirectory, [.text(path)], .int32) { real.createDirectory(path) }
    }

    func removeDirectory(_ path: String) -> Int32 {
        call(.removeDirectory, [.text(path)], .int32) { real.removeDirectory(path) }
    }

    func contentsOfDirectory(_ path: String) -> [String]? {
        call(.contentsOfDirectory, [.text(path)], .optional(.list(.text))) { real.contentsOfDirectory(path) }
    }

    func syncDirectory(_ path: String) -> Int32 {
        call(.syncDirectory, [.text(path)], .int32) { real.syncDirectory(path) }
    }

    // MARK: File events

    func openFileWatcher() -> Int32 { call(.openFileWatcher, [], .int32, real.openFileWatcher) }

    func watch(_ path: String, with descriptor: Int32, for mask: UInt32) -> Int32 {
        call(.watchFile, [.text(path), .number(descriptor), .number(Int(mask))], .int32) {
            real.watch(path, with: descriptor, for: mask)
        }
    }

    func unwatch(_ number: Int32, with descriptor: Int32) {
        call(.unwatchFile, [.number(number), .number(descriptor)], .none) { real.unwatch(number, with: descriptor) }
    }
}

extension Coding where Value == SocketFile {
    static let socketFile = Coding {
        $1.put(unsigned: $0.device)
        $1.put(unsigned: $0.inode)
    } decode: {
        SocketFile(device: $0.unsigned(), inode: $0.unsigned())
    }
}

extension Coding where Value == UnsafeRawBufferPointer? {
    /// The contents of a file, in memory that a replay allocates.
    static func mapped(keepsPayloads: Bool) -> Coding {
        Coding { contents, bytes in
            bytes.put(contents != nil)
            guard let contents else { return }
            if keepsPayloads {
                bytes.put(contents)
            } else {
                bytes.put(contents.count)
                bytes.put(fixed: TapeCheck.digest(contents))
            }
        } decode: { bytes in
            guard bytes.flag() else { return nil }
            guard keepsPayloads else { return UnsafeRawBufferPointer(start: nil, count: 0) }
            let content = bytes.content()
            guard !content.isEmpty else { return UnsafeRawBufferPointer(start: nil, count: 0) }
            let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: content.count, alignment: 16)
            memory.copyBytes(from: content)
            return UnsafeRawBufferPointer(memory)
        }
    }
}
