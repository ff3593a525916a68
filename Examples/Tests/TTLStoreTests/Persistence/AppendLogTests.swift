import ExampleTestSupport
import Glibc
import RunLoopKit
import RunLoopUnix
import Testing

@testable import TTLStore

@Suite("The log", .serialized)
struct AppendLogTests {
    private let directory: ScratchDirectory
    private let path: String
    private var loop: RunLoop { .current }

    init() throws {
        directory = try ScratchDirectory()
        path = directory.file("log")
    }

    /// A store with a log.
    private final class Logged {
        let store: Store
        // The log, until it is closed: then another log may have the file.
        private(set) var log: AppendLog!
        let disk: DiskThread
        let cut: Int?
        private let loop: RunLoop

        init(_ path: String, _ settings: AppendLog.Settings, on loop: RunLoop) throws {
            self.loop = loop
            store = Store(on: loop)
            disk = DiskThread(on: loop)
            do {
                let log = try AppendLog(path, settings, store, disk, on: loop)
                cut = try log.load()
                if cut == nil { try log.create() }
                self.log = log
            } catch {
                disk.close()
                throw error
            }
            let writer = ChangeWriter(log.queue, on: loop)
            store.changeHandler = { writer.note($0) }
        }

        func run(until isDone: () -> Bool) {
            while !isDone() { loop.run(in: .default, until: loop.now + .milliseconds(1)) }
        }

        func close() -> DiskError? {
            store.changeHandler = nil
            var result: DiskError??
            log.close { result = .some($0) }
            run { result != nil }
            disk.close()
            log = nil
            return result!
        }
    }

    private func open(_ sync: AppendLog.Sync = .always, rewriteSize: Int = 1 << 30) throws -> Logged {
        try Logged(path, AppendLog.Settings(sync: sync, rewriteSize: rewriteSize), on: loop)
    }

    /// Returns the contents found at a new start.
    private func contents() throws -> [[UInt8]: [UInt8]] {
        let logged = try open()
        let contents = logged.store.contents
        #expect(logged.close() == nil)
        return contents
    }

    @Test("changes are made again at the next start", arguments: AppendLog.Sync.allCases)
    func replay(sync: AppendLog.Sync) throws {
        var random = SeededGenerator(seed: 7)
        var contents: [[UInt8]: [UInt8]] = [:]
        for _ in 0..<5 {
            let logged = try open(sync)
            #expect(logged.store.contents == contents)
            for _ in 0..<20 {
                for _ in 0..<50 { logged.store.change(using: &random) }
                loop.run(in: .default, until: loop.now)
            }
            contents = logged.store.contents
            #expect(logged.close() == nil)
        }
        #expect(directory.names == ["log"])
    }

    @Test("with always, a change is safe only when the disk has it, and one sync serves all that came together")
    func safety() throws {
        let logged = try open(.always)
        var safe: Int { logged.log.queue.safePosition(now: loop.now) }
        var unsafe: Int? { logged.log.queue.unsafePosition(hasChanged: true, now: loop.now) }
        #expect(unsafe == nil)
        logged.store.set(Key([1]), [1])
        let first = try #require(unsafe)
        logged.store.set(Key([2]), [2])
        #expect(unsafe == first)
        logged.run { safe >= first }
        #expect(unsafe == nil)
        let file = bytes(of: path)
        let copy = Store(on: loop)
        _ = try file.withUnsafeBytes { try Frame.read($0, .log, copy.restore) }
        #expect(copy.contents == logged.store.contents)
        #expect(logged.close() == nil)
    }

    @Test("an incomplete last record is cut off, and the log continues from there")
    func torn() throws {
        let logged = try open()
        logged.store.set(Key([1]), [1])
        #expect(logged.close() == nil)
        let whole = bytes(of: path)
        TTLStoreTests.write(whole + Frame.head(length: 100, sum: 1) + [1, 2, 3], to: path)
        let again = try open()
        #expect(again.cut == 15)
        #expect(bytes(of: path) == whole)
        again.store.set(Key([2]), [2])
        #expect(again.close() == nil)
        #expect(try contents().count == 2)
    }

    @Test("a log with a damaged middle is refused, and left alone")
    func damaged() throws {
        let logged = try open()
        for key in 0..<10 {
            logged.store.set(Key([UInt8(key)]), [1])
            loop.run(in: .default, until: loop.now)
        }
        #expect(logged.close() == nil)
        var damaged = bytes(of: path)
        damaged[40] ^= 1
        TTLStoreTests.write(damaged, to: path)
        let error = #expect(throws: DiskError.self) { try open() }
        #expect(error?.description.hasPrefix("\(path) is not a whole log: damaged at byte ") == true)
        #expect(bytes(of: path) == damaged)
    }

    @Test("a long log is written anew while it grows, and loses nothing", arguments: 0..<3)
    func rewriting(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let logged = try open(.no, rewriteSize: 30_000)
        var rewrites = 0
        logged.log.rewriteHandler = { outcome in
            rewrites += 1
            #expect((try? outcome.get()) != nil)
        }
        var rounds = 0
        logged.run {
            rounds += 1
            for _ in 0..<20 { logged.store.change(using: &random) }
            return rewrites >= 3
        }
        let contents = logged.store.contents
        #expect(logged.close() == nil)
        #expect(bytes(of: path).count < 120_000, "\(rounds) rounds")
        #expect(try self.contents() == contents, "seed \(seed)")
        #expect(directory.names == ["log"])
    }

    @Test("however often a log is loaded, it is written anew when it is twice as long as its keys need")
    func restarts() throws {
        let value = [UInt8](repeating: 1, count: 1_000)
        for start in 0..<10 {
            let logged = try open(.no, rewriteSize: 20_000)
            for _ in 0..<15 {
                logged.store.set(Key([1]), value)
                loop.run(in: .default, until: loop.now)
            }
            // Until a rewrite that has begun ends.
            var passes = 0
            logged.run {
                passes += 1
                return logged.log.queue.length <= 20_000 || passes > 2_000
            }
            #expect(logged.close() == nil)
            #expect(bytes(of: path).count <= 20_000, "start \(start)")
        }
    }

    @Test("a second store cannot have the log, by whatever path, before it was written anew or afterwards")
    func locks() throws {
        let logged = try open()
        let other = directory.file("other")
        #expect(link(path, other) == 0)
        for path in [path, other] {
            let error = #expect(throws: DiskError.self) { try Logged(path, AppendLog.Settings(), on: loop) }
            #expect(error?.description.hasPrefix("another process uses \(path)") == true)
        }
        var isRewritten = false
        logged.log.rewriteHandler = { _ in isRewritten = true }
        logged.log.writeAnew()
        logged.run {
            // At no moment.
            #expect(throws: DiskError.self) { try open() }
            return isRewritten
        }
        #expect(throws: DiskError.self) { try open() }
        #expect(logged.close() == nil)
        #expect(try open().close() == nil)
    }

    @Test("a process that has opened the former file finds no gap while the lock moves from file to file")
    func movingLock() async throws {
        let (disk, path) = (Disk.current, path)
        let first = try disk.open(path, .readingAndWritingLocked)
        let mover = Task.detached {
            var held = first
            for _ in 0..<2_000 {
                let next = try disk.open(path + ".new", .readingAndWritingNew)
                try next.lock()
                try disk.rename(path + ".new", to: path)
                held = next
            }
            return held
        }
        for _ in 0..<4_000 {
            #expect(throws: SystemError.self) { try disk.open(path, .readingAndWritingLocked) }
        }
        let last = try await mover.value
        #expect(throws: SystemError.self) { try disk.open(path, .readingAndWritingLocked) }
        withExtendedLifetime(last) {}
    }

    @Test("an empty file is begun as a new log")
    func empty() throws {
        TTLStoreTests.write([], to: path)
        let logged = try open()
        #expect(logged.cut == nil)
        logged.store.set(Key([1]), [1])
        #expect(logged.close() == nil)
        #expect(try contents().count == 1)
    }

    @Test("an extended expiry is logged: a key lives until its last date")
    func putOff() throws {
        let logged = try open()
        logged.store.set(Key([1]), [1], expiry: logged.store.clock.expiry(after: 200))
        logged.store.setExpiry(of: Key([1]), to: logged.store.clock.expiry(after: 1_000_000))
        logged.store.set(Key([2]), [1], expiry: logged.store.clock.expiry(after: 200))
        #expect(logged.close() == nil)
        loop.run(in: .default, until: loop.now + .milliseconds(250))
        let again = try open()
        #expect(again.store.contains(Key([1])))
        #expect(!again.store.contains(Key([2])))
        #expect(again.close() == nil)
    }
}
