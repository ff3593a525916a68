import Glibc
import RunLoopCore
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
        var lock: File? = try Disk.current.open(path, .locking)
        let descriptor = try #require(
            (3..<1_024 as Range<Int32>).first { linkTarget("/proc/self/fd/\($0)") == path })
        // As a fork does.
        let copy = dup(descriptor)
        defer { close(copy) }
        #expect(throws: SystemError.self) { try Disk.current.open(path, .locking) }
        withExtendedLifetime(lock) {}
        lock = nil
        #expect(throws: Never.self) { try Disk.current.open(path, .locking) }
    }

    /// One disk's answers, as text, to calls that another disk receives as well.
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
            try disk.open(other, .creating).write([UInt8](repeating: 65, count: 50_000), at: 0)
            let length = try text(other).utf8.count
            try disk.remove(other)
            return "\(length)"
        }
        note {
            file = try disk.open(one, .creating)
            return try text(one)
        }
        note { "\(try disk.open(one, .creating).path)" }
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
        note { "\(try disk.open(directory + "lock", .locking).path.hasSuffix("lock"))" }
        note { "\(try disk.open(directory + "lock", .locking).path.hasSuffix("lock"))" }
        note {
            let former = try disk.open(directory + "lock", .locking)
            let next = try disk.open(directory + "next", .creating)
            try next.lock()
            try disk.rename(directory + "next", to: directory + "lock")
            note { try disk.open(directory + "lock", .locking).path }
            return withExtendedLifetime((former, next)) { "moved" }
        }
        note { "\(try disk.open(directory + "lock", .locking).path.hasSuffix("lock"))" }
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
        #expect(simulated.withLock(\.self) == real && real.count == 17)
    }

    /// A host that writes ten pieces of ten bytes, the first four of which it syncs, and then crashes.
    private func crash(seed: UInt64, _ prepare: (SimulatedDisk) -> Void = { _ in }) -> (names: [String], log: [UInt8]?)
    {
        withSimulation(seed: seed) { simulation in
            let network = SimulatedNetwork(simulation)
            let host = network.addHost("host") { loop in
                loop.add(CustomSource(), forMode: .default)
                let disk = Disk.current
                let log = try disk.open("/data/log", .creating)
                try disk.syncDirectory(of: "/data/log")
                for piece in 0..<10 {
                    try log.write([UInt8](repeating: UInt8(piece + 1), count: 10), at: 10 * piece)
                    if piece == 3 { try log.sync() }
                }
                _ = try disk.open("/data/new", .creating)
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
            // Behind the hole there is nothing.
            #expect(bytes[zeros...].allSatisfy { $0 == 0 } && bytes.count - zeros <= 10, "seed \(seed)")
        }
        #expect(lengths.contains(40) && lengths.contains(100) && lengths.count > 20 && hasHole)
        #expect(names == [["/data/log"], ["/data/log", "/data/new"], ["/data/log", "/data/other"]])
        #expect(crash(seed: 5).log == crash(seed: 5).log)
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
                    let file = try! Disk.current.open("/data/log", .creating)
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
