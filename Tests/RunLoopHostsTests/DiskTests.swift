import Glibc
@_spi(Ports) import RunLoopCore
import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopUnix
import TestSupport
import Testing

@Suite("Disks, real and simulated")
struct DiskTests {
    @Test("a lock ends with its file, though a child that is about to begin has the descriptor for a moment")
    func lockOfChild() throws {
        let directory = TemporaryDirectory()
        let path = directory["lock"]
        var lock: File? = try Disk.current.open(path, .readingAndWritingLocked)
        let descriptor = try #require(
            (3..<1_024 as Range<Int32>).first { linkTarget("/proc/self/fd/\($0)") == path })
        // As a fork does.
        let copy = dup(descriptor)
        defer { close(copy) }
        #expect(throws: SystemError.self) { try Disk.current.open(path, .readingAndWritingLocked) }
        withExtendedLifetime(lock) {}
        lock = nil
        #expect(throws: Never.self) { try Disk.current.open(path, .readingAndWritingLocked) }
    }

    @Test("a FIFO is opened without a wait for its other end, and is not read")
    func fifo() throws {
        let directory = TemporaryDirectory()
        try #require(mkfifo(directory["fifo"], 0o600) == 0)
        let file = try Disk.current.open(directory["fifo"], .reading)
        #expect(throws: SystemError.self) { try file.read(1, at: 0) }
        #expect(throws: SystemError.self) { try file.contents() }
        #expect(throws: SystemError.self) { try file.withContents { $0.count } }
    }

    /// Returns one disk's answers, as text, to calls that another disk receives as well.
    private static func answers(_ disk: Disk, in directory: String) -> [String] {
        var answers: [String] = []
        func note(_ body: () throws -> String) {
            do {
                answers.append(try body())
            } catch {
                answers.append("errno \((error as! SystemError).errno)")
            }
        }
        func text(_ path: String) throws -> String {
            let file = try disk.open(path, .reading)
            let text = try file.withContents { String(decoding: $0, as: UTF8.self) }
            #expect(try Array(text.utf8) == file.contents())
            return text
        }
        let (one, other) = (directory + "one", directory + "other")
        note { try text(one) }
        note { "\(try disk.open(one, .writing).path)" }
        var file: File?
        note {
            // More than is read at a time.
            try disk.open(other, .readingAndWritingNew).write([UInt8](repeating: 65, count: 50_000), at: 0)
            let length = try text(other).utf8.count
            try disk.remove(other)
            return "\(length)"
        }
        note {
            file = try disk.open(one, .readingAndWritingNew)
            #expect(throws: Never.self, "a new file can be read") { try file!.contents() }
            return try text(one)
        }
        note { "\(try disk.open(one, .readingAndWritingNew).path)" }
        note {
            try file!.write(Array("hello".utf8), at: 0)
            try file!.write(Array("you".utf8), at: 10)
            try file!.sync()
            return try text(one)
        }
        note {
            try file!.truncate(to: 3)
            try file!.truncate(to: 4)
            return try text(one)
        }
        note {
            let file = try disk.open(one, .reading)
            let pieces = try [(2, 1), (9, 3), (1, 9), (0, 0)].map { try file.read($0, at: $1) }
            return "\(pieces)"
        }
        note { "\(try disk.open(one, .reading).size()) \(try disk.open(one, .writing).size())" }
        note { "\(try disk.open(directory, .reading).size())" }
        note { "\(try disk.open(one, .reading).read(1, at: -1))" }
        note { "\(try disk.open(one, .writing).read(1, at: 0))" }
        note { "\(try disk.open(directory, .reading).read(1, at: 0))" }
        note { "\(disk.exists(one)) \(disk.exists(other)) \(disk.exists(directory))" }
        note {
            try disk.rename(one, to: other)
            try file!.write(Array("H".utf8), at: 0)
            try disk.syncDirectory(of: other)
            return try text(other)
        }
        note {
            try disk.rename(one, to: other)
            return "renamed"
        }
        note {
            try disk.remove(other)
            try file!.write(Array("h".utf8), at: 0)
            return "removed"
        }
        note {
            try disk.remove(other)
            return "removed"
        }
        note {
            // Each addition goes to the end, whoever has made the file longer.
            let (log, sameLog) = (try disk.open(one, .appending), try disk.open(one, .appending))
            for (file, word) in [(log, "one "), (sameLog, "two "), (log, "three")] { try file.append(Array(word.utf8)) }
            note { "\(try log.write([1], at: 0))" }
            note { "\(try log.contents())" }
            note { "\(try disk.open(one, .writing).append([1]))" }
            return "\(try text(one)): \(try log.size())"
        }
        note {
            try disk.remove(one)
            return "removed"
        }
        note { "\(try disk.open(directory + "lock", .readingAndWritingLocked).path.hasSuffix("lock"))" }
        note { "\(try disk.open(directory + "lock", .readingAndWritingLocked).path.hasSuffix("lock"))" }
        note {
            let former = try disk.open(directory + "lock", .readingAndWritingLocked)
            let next = try disk.open(directory + "next", .readingAndWritingNew)
            try next.lock()
            try disk.rename(directory + "next", to: directory + "lock")
            note { try disk.open(directory + "lock", .readingAndWritingLocked).path }
            return withExtendedLifetime((former, next)) { "moved" }
        }
        note { "\(try disk.open(directory + "lock", .readingAndWritingLocked).path.hasSuffix("lock"))" }
        return answers
    }

    @Test("a simulated disk answers as the system's does")
    func same() throws {
        let directory = "/tmp/\(UInt64.random(in: 0 ... .max))/"
        mkdir(directory, 0o700)
        defer {
            unlink(directory + "lock")
            rmdir(directory)
        }
        let real = Self.answers(.current, in: directory)
        let simulated = Locked<[String]>([])
        withSimulation { simulation in
            SimulatedNetwork(simulation).addHost("host") { _ in
                simulated.withLock { $0 = Self.answers(.current, in: "/data/") }
            }
            simulation.advance(by: .seconds(1))
        }
        #expect(simulated.withLock(\.self) == real && real.count == 28)
    }

    /// Runs a host that writes ten pieces of ten bytes, syncs the first four, and then crashes.
    private func crash(seed: UInt64, _ prepare: (SimulatedDisk) -> Void = { _ in }) -> (names: [String], log: [UInt8]?)
    {
        withSimulation(seed: seed) { simulation in
            let network = SimulatedNetwork(simulation)
            let host = network.addHost("host") { loop in
                loop.add(CustomSource(), forMode: .default)
                let disk = Disk.current
                let log = try disk.open("/data/log", .readingAndWritingNew)
                try disk.syncDirectory(of: "/data/log")
                for piece in 0..<10 {
                    try log.write([UInt8](repeating: UInt8(piece + 1), count: 10), at: 10 * piece)
                    if piece == 3 { try log.sync() }
                }
                _ = try disk.open("/data/new", .readingAndWritingNew)
                try disk.rename("/data/new", to: "/data/other")
            }
            prepare(host.disk)
            simulation.advance(by: .seconds(1))
            host.crash()
            return (host.disk.paths, host.disk.contents(of: "/data/log"))
        }
    }

    @Test("a crash keeps synced changes, and a leading part of the others, the last of which may be torn")
    func crashes() {
        var lengths: Set<Int> = []
        var names: Set<[String]> = []
        var hasHole = false
        for seed: UInt64 in 0..<200 {
            let (paths, log) = crash(seed: seed)
            let bytes = log ?? []
            names.insert(paths)
            lengths.insert(bytes.count)
            #expect(bytes.count >= 40 && bytes.count <= 100, "seed \(seed)")
            let zeros = bytes.firstIndex(of: 0) ?? bytes.count
            hasHole = hasHole || zeros < bytes.count
            #expect(bytes[..<zeros].enumerated().allSatisfy { $1 == UInt8($0 / 10 + 1) }, "seed \(seed)")
            // Nothing follows the hole.
            #expect(bytes[zeros...].allSatisfy { $0 == 0 } && bytes.count - zeros <= 10, "seed \(seed)")
        }
        #expect(lengths.contains(40) && lengths.contains(100) && lengths.count > 20 && hasHole)
        #expect(names == [["/data/log"], ["/data/log", "/data/new"], ["/data/log", "/data/other"]])
        #expect(crash(seed: 5).log == crash(seed: 5).log)
    }

    /// Returns the contents of a host's disk after a crash.
    ///
    /// - Parameter work: the work of the host's program, before the crash.
    private func disk(afterCrashOf seed: UInt64, _ work: @escaping @Sendable (Disk) throws -> Void) -> [String] {
        withSimulation(seed: seed) { simulation in
            let host = SimulatedNetwork(simulation).addHost("host") { loop in
                loop.add(CustomSource(), forMode: .default)
                try work(.current)
            }
            simulation.advance(by: .seconds(1))
            host.crash()
            func tree(_ directory: String) -> [String] {
                host.disk.contentsOfDirectory(at: directory)!.flatMap { name in
                    let path = "\(directory)/\(name)"
                    let bytes = host.disk.contents(of: path)
                    return ["\(path)\(bytes.map { ": \($0)" } ?? "/")"] + (bytes == nil ? tree(path) : [])
                }
            }
            return tree("/data")
        }
    }

    private static let seeds = 0..<60 as Range<UInt64>

    /// Returns all possible contents of the disk after a crash.
    private func outcomes(_ work: @escaping @Sendable (Disk) throws -> Void) -> Set<[String]> {
        Set(Self.seeds.map { disk(afterCrashOf: $0, work) })
    }

    @Test("a file that was synced is lost with its directory, which is safe once it and its parent were synced")
    func lostDirectories() {
        @Sendable func makeFile(_ disk: Disk) throws {
            try disk.createDirectory("/data/new")
            let file = try disk.open("/data/new/file", .readingAndWritingNew)
            try file.write([1], at: 0)
            try file.sync()
        }
        #expect(outcomes(makeFile) == [[], ["/data/new/"], ["/data/new/", "/data/new/file: [1]"]])
        let withDirectory = outcomes { disk in
            try makeFile(disk)
            try disk.syncDirectory(of: "/data/new/file")
        }
        #expect(withDirectory == [[], ["/data/new/", "/data/new/file: [1]"]])
        let withParent = outcomes { disk in
            try makeFile(disk)
            try disk.syncDirectory(of: "/data/new")
        }
        #expect(withParent == [["/data/new/"], ["/data/new/", "/data/new/file: [1]"]])
        let withBoth = outcomes { disk in
            try makeFile(disk)
            try disk.syncDirectory(of: "/data/new/file")
            try disk.syncDirectory(of: "/data/new")
        }
        #expect(withBoth == [["/data/new/", "/data/new/file: [1]"]])
    }

    @Test("after a crash a moved file or directory is at its old place or at its new one, never at both or at none")
    func moves() {
        let work: @Sendable (Disk) throws -> Void = { disk in
            for name in ["one", "other"] { try disk.createDirectory("/data/\(name)") }
            let file = try disk.open("/data/one/file", .readingAndWritingNew)
            try file.write([1], at: 0)
            try file.sync()
            try disk.syncDirectory(of: "/data/one/file")
            try disk.syncDirectory(of: "/data/one")
            try disk.rename("/data/one/file", to: "/data/other/file")
            try disk.rename("/data/other", to: "/data/one/other")
        }
        let (first, last) = (["/data/one/", "/data/one/file: [1]", "/data/other/"], ["/data/one/other/file: [1]"])
        let moved = ["/data/one/", "/data/one/other/"] + last
        #expect(outcomes(work) == [first, ["/data/one/", "/data/other/", "/data/other/file: [1]"], moved])
        for directory in ["/data/one", "/data/one/other"] {
            // The move of a directory is safe with the names of either parent, and all earlier changes with it.
            let synced = outcomes { disk in
                try work(disk)
                try disk.syncDirectory(of: directory)
            }
            #expect(synced == [moved])
        }
        let removed = outcomes { disk in
            try work(disk)
            try disk.rename("/data/one/other/file", to: "/data/file")
            try disk.removeDirectory("/data/one/other")
            try disk.syncDirectory(of: "/data/one/other")
        }
        #expect(removed == [["/data/file: [1]", "/data/one/"]])
    }

    @Test("a name that was synced does not come back at an earlier place")
    func order() {
        let outcomes = outcomes { disk in
            try disk.createDirectory("/data/one")
            _ = try disk.open("/data/new", .readingAndWritingNew)
            try disk.rename("/data/new", to: "/data/one/file")
            // Follows the file's creation, but not its directory's.
            try disk.syncDirectory(of: "/data/one/file")
        }
        #expect(outcomes == [[], ["/data/one/", "/data/one/file: []"]])
    }

    @Test("a process with too many open files makes no further one")
    func descriptors() {
        withSimulation { simulation in
            let log = Log<Int32>()
            let host = SimulatedNetwork(simulation).addHost("host") { _ in
                var files: [File] = []
                do throws(SystemError) {
                    while true { files.append(try Disk.current.open("/data/\(files.count)", .readingAndWritingNew)) }
                } catch { log.append(error.errno) }
                log.append(Int32(files.count))
            }
            simulation.advance(by: .seconds(1))
            #expect(log.entries.first == EMFILE && log.entries.last == Int32(host.disk.paths.count))
        }
    }

    @Test("a disk can be full, slow and broken")
    func trouble() {
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            let log = Locked<[String]>([])
            let host = network.addHost("host") { loop in
                func attempt(_ body: () throws -> Void) {
                    do {
                        try body()
                        let now = loop.now
                        log.withLock { $0.append("\(now) done") }
                    } catch {
                        let (now, number) = (loop.now, (error as! SystemError).errno)
                        log.withLock { $0.append("\(now) errno \(number)") }
                    }
                }
                loop.perform(afterDelay: .seconds(1)) {
                    let file = try! Disk.current.open("/data/log", .readingAndWritingNew)
                    attempt { try file.write([1, 2, 3, 4, 5, 6], at: 0) }
                    attempt { try file.write([1, 2, 3, 4, 5, 6], at: 6) }
                    attempt { try file.write([1, 2, 3, 4], at: 2) }
                    attempt { try file.sync() }
                    attempt { try Disk.current.rename("/data/log", to: "/data/other") }
                }
            }
            host.disk.capacity = 10
            host.disk.slow(.sync, by: .seconds(3))
            host.disk.fail(.rename, errno: EIO)
            simulation.advance(by: .seconds(10))
            let (first, later) = ("1.000000000", "4.000000000")
            #expect(
                log.withLock(\.self) == [
                    "\(first) done", "\(first) errno \(ENOSPC)", "\(first) done", "\(later) done",
                    "\(later) errno \(EIO)",
                ])
            #expect(host.disk.contents(of: "/data/log")?.count == 10)
        }
    }
}
