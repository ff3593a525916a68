import ExampleTestSupport
import Glibc
import RunLoopKit
import Testing

@testable import TTLStore

@Suite("Snapshots", .serialized)
struct SnapshotTests {
    private let directory: ScratchDirectory
    private let path: String
    private var loop: RunLoop { .current }

    init() throws {
        directory = try ScratchDirectory()
        path = directory.file("snapshot")
    }

    /// Writes a snapshot on the disk's thread while the loop runs.
    private func write(_ store: Store, meanwhile: @escaping () -> Void = {}) throws -> DiskError? {
        let disk = DiskThread(on: loop)
        defer { disk.close() }
        let snapshot = try Snapshot(path, store, disk)
        store.changeHandler = snapshot.note
        defer { store.changeHandler = nil }
        var result: DiskError??
        snapshot.write { result = .some($0) }
        while result == nil {
            meanwhile()
            loop.run(in: .default, until: loop.now + .milliseconds(1))
        }
        return result!
    }

    private func load() throws -> Store {
        let disk = DiskThread(on: loop)
        defer { disk.close() }
        let store = Store(on: loop)
        try Snapshot(path, store, disk).load()
        return store
    }

    @Test("keys and values of any bytes are written and read back, with times to live")
    func roundTrip() throws {
        let store = Store(on: loop)
        store.set(Key([0, 13, 10, 255]), [10, 0])
        store.set(Key([1]), [], expiry: store.clock.expiry(after: 100_000))
        store.set(Key([2]), [7], expiry: store.clock.expiry(after: 7_500_000_000_000))
        store.set(Key([]), Array(repeating: 7, count: 3_000_000))
        #expect(try write(store) == nil)
        #expect(directory.names == ["snapshot", "snapshot.lock"])
        let other = try load()
        #expect(other.contents == store.contents)
        #expect(other.count == 4)
        #expect(other.countWithExpiry == 2)
        let left = try #require(other.timeLeft(of: Key([1])))
        #expect(left <= .seconds(100) && left > .seconds(50))
    }

    @Test("the store changes while it is written, and the loop keeps running")
    func changes() throws {
        let store = Store(on: loop)
        for key in 0..<100_000 { store.set(Key(Array("k\(key)".utf8)), Array("value \(key)".utf8)) }
        var random = SeededGenerator(seed: 1)
        var passes = 0
        #expect(
            try write(store) {
                passes += 1
                for _ in 0..<100 { store.change(using: &random, keys: 100_000) }
            } == nil)
        #expect(passes > 10, "it was written in pieces")
        let copy = try load()
        // Changes after the last piece are not in the snapshot.
        #expect(copy.count > 90_000)
    }

    @Test("without a file there is nothing to load; a key that has expired meanwhile is not loaded")
    func loading() throws {
        #expect(try load().count == 0)
        let store = Store(on: loop)
        store.set(Key([1]), [1], expiry: store.clock.expiry(at: store.clock.now + 50))
        store.set(Key([2]), [2])
        #expect(try write(store) == nil)
        while store.count > 1 { loop.run(in: .default, until: loop.now + .milliseconds(5)) }
        #expect(try load().count == 1)
    }

    @Test("a file that is not a whole snapshot is refused with a sentence")
    func broken() throws {
        #expect(try write(Store(on: loop)) == nil)
        let whole = bytes(of: path)
        TTLStoreTests.write(Array(whole.dropLast()), to: path)
        let part = #expect(throws: DiskError.self) { try load() }
        #expect(part?.description == "\(path) is not a whole snapshot: damaged at byte 20")
        TTLStoreTests.write(Array("TTLSTORE 1\n".utf8), to: path)
        let other = #expect(throws: DiskError.self) { try load() }
        #expect(other?.description == "\(path) is not a snapshot of this version")
    }

    @Test("the file of a process that was killed is cleared; a link in its place is not followed")
    func leftovers() throws {
        let victim = directory.file("victim")
        TTLStoreTests.write([1, 2, 3], to: victim)
        #expect(symlink(victim, path + ".tmp") == 0)
        _ = try load()
        #expect(!directory.names.contains("snapshot.tmp"))
        #expect(symlink(victim, path + ".tmp") == 0)
        #expect(try write(Store(on: loop)) == nil)
        #expect(bytes(of: victim) == [1, 2, 3])
        unlink(path)
        #expect(symlink(victim, path) == 0)
        #expect(throws: DiskError.self) { try load() }
    }

    @Test("one process at a time has a snapshot; a missing directory is reported at once")
    func locks() throws {
        let disk = DiskThread(on: loop)
        defer { disk.close() }
        let store = Store(on: loop)
        let first = try Snapshot(path, store, disk)
        let error = #expect(throws: DiskError.self) { try Snapshot(path, store, disk) }
        #expect(error?.description.hasPrefix("another process uses \(path); lock \(path).lock: ") == true)
        withExtendedLifetime(first) {}
        let missing = #expect(throws: DiskError.self) { try Snapshot("/nowhere/at/all", store, disk) }
        #expect(missing?.description == "the directory /nowhere/at/ of /nowhere/at/all: No such file or directory")
    }
}
