import Glibc
@_spi(Ports) import RunLoopCore
import RunLoopKit
import RunLoopSimulation
@_spi(Ports) import RunLoopUnix
import TestSupport
import Testing

@testable import RunLoopHosts

/// Files of one disk, and a watcher's events for them, as text.
private final class FileBench {
    private let disk = Disk.current
    private let system: any SystemCalls
    private let loop: RunLoop
    private let root: String
    private let watcher: FileWatcher
    private let log: Log
    private var open: [(name: String, file: File)] = []
    private var watches: [(name: String, watch: FileWatch)] = []

    private final class Log {
        var events: [FileEvent] = []
        var cookies: [UInt32] = []
    }

    init(_ system: any SystemCalls, on loop: RunLoop, root: String) throws {
        (self.system, self.loop, self.root) = (system, loop, root)
        let log = Log()
        self.log = log
        watcher = try FileWatcher { _, events in log.events += events }
        try loop.add(watcher, forMode: .default)
    }

    func end() {
        watcher.invalidate()
    }

    private func word(_ body: () throws -> Void) -> String {
        do {
            try body()
            return "done"
        } catch let error as SystemError {
            return String(cString: strerror(error.errno))
        } catch let error as FileWatchError {
            return "\(error)".replacing(root, with: "")
        } catch {
            return "\(error)"
        }
    }

    /// Returns the events since the last call.
    ///
    /// - Parameter count: the expected number of events. A child that another test is about to start has the files open
    ///   for a moment, so they may close later.
    private func events(_ count: Int) -> [String] {
        _ = eventually {
            loop.run(in: .default, until: loop.now)
            return log.events.count >= count
        }
        defer { log.events = [] }
        return log.events.map { event in
            if event.cookie != 0, !log.cookies.contains(event.cookie) { log.cookies.append(event.cookie) }
            let pair = log.cookies.firstIndex(of: event.cookie).map { " pair \($0)" } ?? ""
            let path = (event.path ?? "").replacing(root, with: "")
            return "\(event.kind)\(event.isDirectory ? " of a directory" : "") \(path)\(pair)"
        }
    }

    func step(_ random: inout SeededGenerator, events count: Int = 0) -> [String] {
        let name = Self.name(&random)
        let path = "\(root)/\(name)"
        let what: String
        switch Int.random(in: 0..<13, using: &random) {
        case 0:
            what = "create \(name): " + word { open.append((name, try disk.open(path, .readingAndWritingNew))) }
        case 1:
            what = "open \(name): " + word { open.append((name, try disk.open(path, .writing))) }
        case 2:
            what = "read \(name): " + word { open.append((name, try disk.open(path, .reading))) }
        case 3 where !open.isEmpty:
            let file = open[Int.random(in: 0..<open.count, using: &random)].file
            what =
                Bool.random(using: &random)
                ? "write: " + word { try file.write([1, 2, 3], at: 0) }
                : "truncate: " + word { try file.truncate(to: 2) }
        case 4 where !open.isEmpty:
            open.remove(at: Int.random(in: 0..<open.count, using: &random))
            what = "close"
        case 5:
            what = "remove \(name): " + word { try disk.remove(path) }
        case 6:
            let other = Self.name(&random)
            what = "rename \(name) to \(other): " + word { try disk.rename(path, to: "\(root)/\(other)") }
        case 7:
            let target = ["\(root)/", root, path].randomElement(using: &random)!
            what =
                "watch \(target.replacing(root, with: "")): "
                + word {
                    watches.append((name, try watcher.watch(target)))
                }
        case 8 where !watches.isEmpty:
            watcher.unwatch(watches.remove(at: Int.random(in: 0..<watches.count, using: &random)).watch)
            what = "unwatch"
        case 9...10: what = "make directory \(name): " + word { try disk.createDirectory(path) }
        case 11: what = "remove directory \(name): " + word { try disk.removeDirectory(path) }
        case 12: what = "allow \(name): \(system.setPermissions(0o700, at: path))"
        default: what = "nothing"
        }
        return [what] + events(count)
    }

    /// Returns a name in the watched directory, or in a directory there.
    private static func name(_ random: inout SeededGenerator) -> String {
        let (names, isDeep) = (["a", "b", "c"], Int.random(in: 0..<3, using: &random) == 0)
        let name = names.randomElement(using: &random)!
        return isDeep ? "\(name)/\(names.randomElement(using: &random)!)" : name
    }
}

@Suite("File events of simulated hosts agree with the system's", .timeLimit(.minutes(2)))
struct FileEventTests {
    /// - Parameter expected: the events of the other disk.
    private static func steps(
        _ system: any SystemCalls, on loop: RunLoop, root: String, seed: UInt64, expected: [[String]]? = nil
    ) throws -> [[String]] {
        let bench = try FileBench(system, on: loop, root: root)
        defer { bench.end() }
        var random = SeededGenerator(seed: seed)
        return (0..<120).map { step in bench.step(&random, events: (expected?[step].count ?? 1) - 1) }
    }

    @Test("random changes of files are reported in the same words")
    func random() throws {
        for seed in 0..<40 as Range<UInt64> {
            let directory = TemporaryDirectory()
            // A file, so that both systems have the directory.
            directory.write("", to: "kept")
            let simulated = try withSimulation(seed: seed) { simulation in
                let network = SimulatedNetwork(simulation)
                network.test.disk.install([], at: "/dir/kept")
                return try Self.steps(network.system, on: simulation.loop, root: "/dir", seed: seed)
            }
            let real = try Self.steps(
                WorldSystem.real, on: .current, root: directory.path, seed: seed, expected: simulated)
            for (step, (one, other)) in zip(real, simulated).enumerated() {
                #expect(one == other, "seed \(seed), step \(step)")
                if one != other { return }
            }
        }
    }

    /// Returns the events of a directory that is removed, with a file in it, while a process has the file open.
    private static func endOfDirectory(on loop: RunLoop, root: String, isSimulated: Bool) throws -> [[String]] {
        var events: [String] = []
        let watcher = try FileWatcher { _, new in events += new.map { "\($0.kind) \($0.name ?? "-")" } }
        try loop.add(watcher, forMode: .default)
        defer { watcher.invalidate() }
        let disk = Disk.current
        try disk.createDirectory("\(root)/a")
        try disk.createDirectory("\(root)/a/b")
        for path in ["a", "a/b"] { try watcher.watch("\(root)/\(path)") }
        var file: File? = try disk.open("\(root)/a/b/file", .readingAndWritingNew)
        try disk.remove("\(root)/a/b/file")
        func told(_ count: Int, _ body: () throws -> Void) rethrows -> [String] {
            try body()
            _ = eventually {
                loop.run(in: .default, until: loop.now)
                return isSimulated || events.count >= count
            }
            defer { events = [] }
            return events
        }
        return [
            told(2) {}, try told(1) { try disk.removeDirectory("\(root)/a/b") },
            try told(0) { try disk.removeDirectory("\(root)/a") },
            try told(1) { try file?.write([1], at: 0) }, told(5) { file = nil },
        ]
    }

    @Test("a removed directory ends when the removed files in it have closed")
    func endOfDirectory() throws {
        let directory = TemporaryDirectory()
        let real = try Self.endOfDirectory(on: .current, root: directory.path, isSimulated: false)
        let simulated = try withSimulation { simulation in
            _ = SimulatedNetwork(simulation)
            return try Self.endOfDirectory(on: simulation.loop, root: "/data", isSimulated: true)
        }
        #expect(simulated == real && real.last!.count == 5, "\(real)")
    }

    @Test("a test's changes to the files of a host are reported there; a full queue reports its overflow")
    func scripted() {
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            let log = Locked<[String]>([])
            let host = network.addHost("host") { loop in
                let watcher = try FileWatcher { _, events in
                    log.withLock { $0 += events.map { "\($0.kind) \($0.name ?? "-")" } }
                }
                try watcher.watch("/etc/")
                try loop.add(watcher, forMode: .default)
            }
            simulation.advance(by: .seconds(1))
            func told(_ body: () -> Void) -> [String] {
                log.withLock { $0 = [] }
                body()
                simulation.advance(by: .seconds(1))
                return log.withLock(\.self)
            }
            #expect(
                told { host.disk.install([1], at: "/etc/jobs") } == [
                    "created jobs", "modified jobs", "closedAfterWriting jobs",
                ])
            #expect(told { host.disk.install([2], at: "/etc/jobs") } == ["modified jobs", "closedAfterWriting jobs"])
            #expect(told { host.disk.moveFile(at: "/etc/jobs", to: "/etc/new") } == ["movedFrom jobs", "movedTo new"])
            #expect(told { host.disk.moveFile(at: "/etc/new", to: "/var/new") } == ["movedFrom new"])
            #expect(told { host.disk.removeFile(at: "/var/new") } == [])
            host.disk.fileEventLimit = 2
            #expect(
                told { for name in ["a", "b"] { host.disk.install([], at: "/etc/\(name)") } } == [
                    "created a", "closedAfterWriting a", "overflow -",
                ])
            host.crash()
            #expect(told { host.disk.install([], at: "/etc/c") } == [])
        }
    }
}
