internal import CPrograms
internal import CShims
internal import Glibc
internal import RunLoopCore
@_spi(Ports) internal import RunLoopSimulation
@_spi(Ports) internal import RunLoopUnix

/// The calls of a program on files, which are those of the simulated process, on the host's disk.
extension SystemProgram {
    // MARK: Paths

    /// Answers a request about a path.
    ///
    /// - Returns: the result for the thread; below zero, an error number.
    func answerPath(_ request: Request) -> Int64 {
        let (directory, second, third, _) = request.arguments
        switch request.kind {
        case rlk_request_open:
            return open(
                path(request.text, in: directory), flags: Int32(truncatingIfNeeded: second),
                permissions: UInt32(truncatingIfNeeded: third))
        case rlk_request_status: return describe(request)
        case rlk_request_access: return checkAccess(request)
        case rlk_request_make_directory:
            return result(
                process.createDirectory(
                    path(request.text, in: directory), permissions: UInt32(truncatingIfNeeded: second)))
        case rlk_request_make_link, rlk_request_add_name, rlk_request_rename: return answerPaths(request)
        case rlk_request_read_link: return readLink(request)
        case rlk_request_set_times: return setTimes(request)
        case rlk_request_truncate_path:
            return result(process.truncate(path(request.text, in: directory), to: Int(second)))
        case rlk_request_remove:
            let path = path(request.text, in: directory)
            return result(second == 1 ? process.removeDirectory(path) : process.removeFile(at: path))
        case rlk_request_own: return setOwner(request)
        case rlk_request_enter: return enter(request)
        case rlk_request_directory:
            let bytes = Array((process.workingDirectory + "\0").utf8)
            bytes.withUnsafeBytes { request.set($0) }
            return Int64(bytes.count)
        default:
            let permissions = UInt32(truncatingIfNeeded: second)
            guard request.count > 0 else {
                return result(process.setPermissions(permissions, of: descriptor(directory)))
            }
            return result(process.setPermissions(permissions, at: path(request.text, in: directory)))
        }
    }

    /// Answers a request about two paths.
    private func answerPaths(_ request: Request) -> Int64 {
        let (directory, otherDirectory, flags, _) = request.arguments
        let texts = request.text.split(separator: "\0", maxSplits: 1, omittingEmptySubsequences: false)
        guard texts.count == 2, !texts[1].isEmpty else { return -Int64(ENOENT) }
        let (text, other) = (String(texts[0]), path(String(texts[1]), in: otherDirectory))
        switch request.kind {
        case rlk_request_make_link: return result(process.createLink(other, to: text))
        case rlk_request_rename: return result(process.rename(path(text, in: directory), to: other, flags: Int(flags)))
        default:
            do throws(Refusal) {
                let node = try node(at: text, in: directory, followsLast: flags == 1)
                return result(process.addName(other, of: node))
            } catch { return -Int64(error.reason) }
        }
    }

    /// Returns the node of a request's path or, if there is none, of the descriptor.
    private func node(of request: Request, followsLast: Bool = true) throws(Refusal) -> DiskNode {
        try node(at: request.text, in: request.arguments.0, followsLast: followsLast)
    }

    private func node(at text: String, in directory: Int64, followsLast: Bool) throws(Refusal) -> DiskNode {
        // A program finds its descriptors there as well.
        let start = "/proc/self/fd/"
        let number = text.hasPrefix(start) ? Int64(text.dropFirst(start.count)) : text.isEmpty ? directory : nil
        guard let number else {
            let path = Directories.absolute(path(text, in: directory), from: process.workingDirectory)
            return try process.machine.disk.node(at: path, as: process.user, followsLast: followsLast)
        }
        guard let target = process.descriptors[descriptor(number)] else { throw Refusal(EBADF) }
        guard let file = target as? OpenFile else { throw Refusal(EINVAL) }
        return file.node
    }

    private func checkAccess(_ request: Request) -> Int64 {
        let (directory, second, mode, _) = request.arguments
        let path = path(request.text, in: directory)
        if process.machine.sockets.files[path] != nil { return 0 }
        do throws(Refusal) {
            let node = try node(of: request, followsLast: second == 0)
            try node.check(Ownership.Use(rawValue: UInt32(truncatingIfNeeded: mode & 7)), process.user)
            let isExecutable = node is DirectoryNode || node.ownership.permissions & 0o111 != 0
            return mode & Int64(X_OK) == 0 || isExecutable ? 0 : -Int64(EACCES)
        } catch {
            return madeText(path) == nil ? -Int64(error.reason) : 0
        }
    }

    private func readLink(_ request: Request) -> Int64 {
        do throws(Refusal) {
            guard let link = try node(of: request, followsLast: false) as? LinkNode else { throw Refusal(EINVAL) }
            let bytes = Array(link.target.utf8)
            bytes.withUnsafeBytes { request.set($0) }
            return Int64(bytes.count)
        } catch { return -Int64(error.reason) }
    }

    private func setTimes(_ request: Request) -> Int64 {
        let (_, read, written, keepsLink) = request.arguments
        let disk = process.machine.disk
        func time(_ number: Int64) -> Int64? {
            switch number {
            case Int64(rlk_time_now.rawValue): disk.time
            case Int64(rlk_time_same.rawValue): nil
            default: number
            }
        }
        do throws(Refusal) {
            let isNow = [read, written].allSatisfy { $0 == Int64(rlk_time_now.rawValue) }
            try disk.setTimes(
                time(read), time(written), isNow: isNow, of: node(of: request, followsLast: keepsLink == 0),
                as: process.user)
            return 0
        } catch { return -Int64(error.reason) }
    }

    private func setOwner(_ request: Request) -> Int64 {
        let (_, owner, group, keepsLink) = request.arguments
        do throws(Refusal) {
            try process.machine.disk.setOwner(
                UInt32(truncatingIfNeeded: owner), UInt32(truncatingIfNeeded: group),
                of: node(of: request, followsLast: keepsLink == 0), as: process.user)
            return 0
        } catch { return -Int64(error.reason) }
    }

    /// Changes the working directory.
    private func enter(_ request: Request) -> Int64 {
        do throws(Refusal) {
            let path = try node(of: request).path
            if let reason = process.machine.disk.reason(againstWorkingIn: path, as: process.user) {
                throw Refusal(reason)
            }
            process.workingDirectory = path
            return 0
        } catch { return -Int64(error.reason) }
    }

    private func path(_ text: String, in directory: Int64) -> String {
        guard !text.hasPrefix("/"), let open = process.descriptors[descriptor(directory)] as? OpenFile else {
            return text
        }
        return open.node.path + "/" + text
    }

    private func open(_ path: String, flags: Int32, permissions: UInt32) -> Int64 {
        if path == "/dev/null" { return number(process.descriptors.add(NullDevice())) }
        let descriptor = process.open(path, flags: flags, permissions: permissions)
        if descriptor < 0, errno == ENOENT, flags & O_ACCMODE == O_RDONLY, let text = madeText(path) {
            return number(process.descriptors.add(MadeFile(text)))
        }
        guard descriptor >= 0, flags & O_TRUNC != 0, process.size(of: descriptor) > 0 else { return number(descriptor) }
        guard process.truncate(descriptor, to: 0) != 0 else { return number(descriptor) }
        let reason = errno
        process.close(descriptor)
        return -Int64(reason)
    }

    /// Returns the text of a file of every system that no host has on its disk.
    private func madeText(_ path: String) -> [UInt8]? {
        switch path {
        case "/etc/hosts":
            let hosts = process.machine.network.nodes.flatMap { node in node.addresses.map { "\($0) \(node.name)\n" } }
            return Array((["127.0.0.1 localhost\n", "::1 localhost\n"] + hosts).joined().utf8)
        case "/etc/nsswitch.conf": return Array("hosts: files\npasswd: files\ngroup: files\n".utf8)
        case "/etc/passwd": return process.users
        default: return path.hasPrefix("/proc/") ? processText(path.split(separator: "/").dropFirst()) : nil
        }
    }

    /// Returns the text of a file about the process or one of its threads.
    private func processText(_ names: ArraySlice<Substring>) -> [UInt8]? {
        guard let owner = names.first, names.count == 2 else { return nil }
        let number = owner == "self" || owner == "thread-self" ? process.processIdentifier : Int32(owner)
        guard let number, number >= process.processIdentifier else { return nil }
        switch names.last {
        case "cmdline": return Array(commandLine.map { $0 + "\0" }.joined().utf8)
        case "comm": return Array((shortName + "\n").utf8)
        case "environ":
            return Array(process.variables.variables.sorted { $0.key < $1.key }.map { "\($0)=\($1)\0" }.joined().utf8)
        case "stat":
            // The state, the parent, and numbers that say nothing about a simulated process.
            let rest = [String](repeating: "0", count: 48).joined(separator: " ")
            return Array("\(number) (\(shortName)) S 1 \(rest)\n".utf8)
        case "status":
            let lines = [
                "Name:\t\(shortName)", "State:\tS (sleeping)", "Tgid:\t\(number)", "Pid:\t\(number)", "Threads:\t1",
            ]
            return Array(lines.map { $0 + "\n" }.joined().utf8)
        default: return nil
        }
    }

    private var shortName: Substring { (commandLine.first ?? "").split(separator: "/").last?.prefix(15) ?? "" }

    /// Describes a path, or a descriptor.
    private func describe(_ request: Request) -> Int64 {
        let directory = request.arguments.0
        let number = descriptor(directory)
        guard request.count > 0 else {
            guard let target = process.target(of: number) else { return -Int64(EBADF) }
            if let file = target as? OpenFile { return describe(file.node, request) }
            return describe(target, numbered: Int(directory) + 1, request)
        }
        let path = path(request.text, in: directory)
        if process.machine.sockets.files[path] != nil {
            return describe(BoundName(), numbered: 1 << 21, request)
        }
        do throws(Refusal) {
            return describe(try node(of: request, followsLast: request.arguments.1 == 0), request)
        } catch {
            guard let text = madeText(path) else { return -Int64(error.reason) }
            return describe(MadeFile(text), numbered: 1 << 20, request)
        }
    }

    private func describe(_ node: DiskNode, _ request: Request) -> Int64 {
        let (kind, size, names) =
            switch node {
            case let directory as DirectoryNode:
                (S_IFDIR, 4_096, 2 + directory.names.values.count { $0 is DirectoryNode })
            case let link as LinkNode: (S_IFLNK, link.target.utf8.count, link.nameCount)
            default: (S_IFREG, (node as? FileNode)?.content.count ?? 0, node.nameCount)
            }
        return set(
            rlk_status(
                mode: kind | node.ownership.permissions, user: node.ownership.owner, group: node.ownership.group,
                names: UInt32(names), number: UInt64(process.machine.number(of: node)), size: UInt64(size),
                read: node.times.read, written: node.times.written, changed: node.times.changed),
            in: request)
    }

    private func describe(_ target: OpenDescription, numbered number: Int, _ request: Request) -> Int64 {
        let kind =
            switch target {
            case is any SocketCalls, is BoundName: S_IFSOCK
            case is MadeFile: S_IFREG
            case is NullDevice: S_IFCHR
            default: S_IFIFO
            }
        return set(
            rlk_status(
                mode: kind | 0o600, user: 0, group: 0, names: 1, number: UInt64(number),
                size: UInt64((target as? MadeFile)?.count ?? 0), read: 0, written: 0, changed: 0), in: request)
    }

    private func set(_ status: rlk_status, in request: Request) -> Int64 {
        withUnsafeBytes(of: status) { request.set($0) }
        return 0
    }

    // MARK: Open files

    /// Answers a request about an open file.
    func answerFile(_ request: Request, _ target: OpenDescription) -> Int64 {
        if let file = target as? MadeFile { return answer(request, file) }
        if target is NullDevice { return 0 }
        guard let file = target as? OpenFile else {
            let isOfPlace = [rlk_request_seek, rlk_request_read_at, rlk_request_write_at].contains(request.kind)
            return -Int64(isOfPlace ? ESPIPE : EINVAL)
        }
        let (_, second, third, _) = request.arguments
        let descriptor = descriptor(request.arguments.0)
        switch request.kind {
        case rlk_request_write_at: return result(process.write(descriptor, request.bytes, at: Int(second)))
        case rlk_request_read_at:
            return result(process.read(descriptor, into: request.room(Int(second)), at: Int(third)))
        case rlk_request_seek: return seek(file, descriptor, Int(second), Int32(third))
        case rlk_request_truncate: return result(process.truncate(descriptor, to: Int(second)))
        case rlk_request_allocate:
            return result(
                process.allocate(descriptor, Int32(truncatingIfNeeded: second), Int(third), Int(request.arguments.3)))
        case rlk_request_sync: return result(process.sync(descriptor))
        case rlk_request_lock:
            guard second & Int64(LOCK_UN) == 0 else {
                process.unlock(descriptor)
                return 0
            }
            return lock(file, request)
        case rlk_request_lock_part: return lockPart(file, request)
        case rlk_request_share: return share(file, Int32(truncatingIfNeeded: second))
        case rlk_request_note_mapping:
            noteMapping(of: file.node, at: UInt(bitPattern: Int(second)), Int(third))
            return 0
        case rlk_request_names: return names(file, request)
        default: return -Int64(ENOSYS)
        }
    }

    func write(_ bytes: UnsafeRawBufferPointer, to file: OpenFile, _ descriptor: Int32) -> Int64 {
        let written = process.write(descriptor, bytes, at: file.place)
        if written > 0 { file.place = file.appends ? process.size(of: descriptor) : file.place + written }
        return result(written)
    }

    func read(_ file: OpenFile, _ descriptor: Int32, into room: UnsafeMutableRawBufferPointer) -> Int64 {
        let count = process.read(descriptor, into: room, at: file.place)
        if count > 0 { file.place += count }
        return result(count)
    }

    private func seek(_ file: OpenFile, _ descriptor: Int32, _ offset: Int, _ origin: Int32) -> Int64 {
        let start =
            switch origin {
            case SEEK_SET: 0
            case SEEK_CUR: file.place
            case SEEK_END: process.size(of: descriptor)
            default: -1
            }
        guard start >= 0, start + offset >= 0 else { return -Int64(EINVAL) }
        file.place = start + offset
        return Int64(file.place)
    }

    /// Lists names from a place on. The directory itself and the one above it come first.
    private func names(_ file: OpenFile, _ request: Request) -> Int64 {
        guard let directory = file.node as? DirectoryNode else { return -Int64(ENOTDIR) }
        let dots: [(String, DiskNode)] = [(".", directory), ("..", directory.directory ?? directory)]
        let entries = dots + directory.sortedNames.map { ($0, directory.names[$0]!) }
        var lines: [UInt8] = []
        for (name, node) in entries.dropFirst(Int(request.arguments.1)) {
            let facts = rlk_name(number: UInt64(process.machine.number(of: node)), kind: kind(of: node))
            guard lines.count + MemoryLayout<rlk_name>.stride + name.utf8.count < rlk_most_bytes else { break }
            lines += withUnsafeBytes(of: facts, Array.init)
            lines += [UInt8](repeating: 0, count: MemoryLayout<rlk_name>.stride - MemoryLayout<rlk_name>.size)
            lines += name.utf8 + [0]
        }
        lines.withUnsafeBytes { request.set($0) }
        return Int64(lines.count)
    }

    /// Returns the kind of a node, as a directory has it beside the name.
    private func kind(of node: DiskNode) -> UInt8 {
        switch node {
        case is DirectoryNode: 4
        case is LinkNode: 10
        default: 8
        }
    }

    private func answer(_ request: Request, _ file: MadeFile) -> Int64 {
        let (_, second, third, _) = request.arguments
        switch request.kind {
        case rlk_request_read_at: return result(file.read(into: request.room(Int(second)), at: Int(third)))
        case rlk_request_seek where third == Int64(SEEK_SET): file.place = max(0, Int(second))
        case rlk_request_seek where third == Int64(SEEK_CUR): file.place = max(0, file.place + Int(second))
        case rlk_request_seek: file.place = max(0, file.count + Int(second))
        default: return -Int64(EBADF)
        }
        return Int64(file.place)
    }
}

/// The file `/dev/null`.
private final class NullDevice: OpenDescription {
    override func read(into room: UnsafeMutableRawBufferPointer) -> Int { 0 }
    override func write(_ bytes: UnsafeRawBufferPointer) -> Int { bytes.count }
}

/// The place of a socket among the names of a disk.
private final class BoundName: OpenDescription {}

/// A file whose text the simulation makes.
private final class MadeFile: OpenDescription {
    private let text: [UInt8]
    var place = 0
    var count: Int { text.count }

    init(_ text: [UInt8]) {
        self.text = text
    }

    override func read(into room: UnsafeMutableRawBufferPointer) -> Int {
        let count = read(into: room, at: place)
        place += count
        return count
    }

    func read(into room: UnsafeMutableRawBufferPointer, at offset: Int) -> Int {
        let rest = text.dropFirst(max(0, offset)).prefix(room.count)
        room.copyBytes(from: rest)
        return rest.count
    }
}
