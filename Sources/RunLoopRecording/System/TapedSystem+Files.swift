internal import Glibc
internal import RunLoopCore
@_spi(Ports) internal import RunLoopUnix

extension TapedSystem {
    // MARK: Paths of sockets

    func socketFile(at path: String) -> SocketFile? {
        call(.socketFile, path, .optional(.socketFile), real.socketFile)
    }

    func setPermissions(_ permissions: UInt32, of descriptor: Int32) -> Int32 {
        call(.setPermissions, permissions, descriptor, .int32, real.setPermissions)
    }

    func setPermissions(_ permissions: UInt32, at path: String) -> Int32 {
        call(.setPermissionsAt, permissions, path, .int32, real.setPermissions)
    }

    // MARK: Files

    func open(_ path: String, flags: Int32) -> Int32 { call(.open, path, flags, .int32, real.open) }

    func lock(_ descriptor: Int32) -> Int32 { call(.lock, descriptor, .int32, real.lock) }

    func unlock(_ descriptor: Int32) { call(.unlock, descriptor, .none, real.unlock) }

    func leads(_ path: String, to descriptor: Int32) -> Bool {
        call(.leads, path, descriptor, .bool, real.leads)
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

    func size(of descriptor: Int32) -> Int { call(.size, descriptor, .int, real.size(of:)) }

    func truncate(_ descriptor: Int32, to length: Int) -> Int32 {
        call(.truncate, descriptor, length, .int32, real.truncate)
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
        let bytes = call(.contentsOfFile, path, most, .optional(tapes.payload), real.contentsOfFile)
        if bytes != nil { tapes.needPayload() }
        return bytes
    }

    func exists(_ path: String) -> Bool { call(.exists, path, .bool, real.exists) }

    func rename(_ path: String, to newPath: String) -> Int32 { call(.rename, path, newPath, .int32, real.rename) }

    func removeFile(at path: String) -> Int32 { call(.removeFile, path, .int32, real.removeFile) }

    func createDirectory(_ path: String) -> Int32 { call(.createDirectory, path, .int32, real.createDirectory) }

    func removeDirectory(_ path: String) -> Int32 { call(.removeDirectory, path, .int32, real.removeDirectory) }

    func contentsOfDirectory(_ path: String) -> [String]? {
        call(.contentsOfDirectory, path, .optional(.list(.text)), real.contentsOfDirectory)
    }

    func syncDirectory(_ path: String) -> Int32 { call(.syncDirectory, path, .int32, real.syncDirectory) }

    // MARK: File events

    func openFileWatcher() -> Int32 { call(.openFileWatcher, [], .int32, real.openFileWatcher) }

    func watch(_ path: String, with descriptor: Int32, for mask: UInt32) -> Int32 {
        call(.watchFile, [.text(path), .number(descriptor), .number(Int(mask))], .int32) {
            real.watch(path, with: descriptor, for: mask)
        }
    }

    func unwatch(_ number: Int32, with descriptor: Int32) {
        call(.unwatchFile, number, descriptor, .none, real.unwatch)
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
            let content = keepsPayloads ? bytes.content() : []
            guard !content.isEmpty else { return UnsafeRawBufferPointer(start: nil, count: 0) }
            let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: content.count, alignment: 16)
            memory.copyBytes(from: content)
            return UnsafeRawBufferPointer(memory)
        }
    }
}
