import Glibc
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@testable import RunLoopUnix

/// Tests without waits: the system queues the events within the calls that cause them, and virtual time looks at real
/// descriptors before it moves.
@Suite("Files")
struct FileWatcherTests {
    private let directory = TemporaryDirectory()

    /// Returns the event batches of a watched directory while `body` runs; waits for at least the given number of
    /// events.
    ///
    /// A file counts as closed when no process has it open, and a child that another test forks at that moment has it.
    private func batches(
        for kinds: FileEvent.Kinds = .all, atLeast count: Int = 0, _ body: (FileWatcher, FileWatch) throws -> Void
    ) throws -> [[FileEvent]] {
        try withSimulation { simulation in
            var batches: [[FileEvent]] = []
            let watcher = try FileWatcher { _, events in batches.append(events) }
            let watch = try watcher.watch(directory.path, for: kinds)
            try simulation.loop.add(watcher, forMode: .common)
            try body(watcher, watch)
            simulation.advance(by: .seconds(1))
            simulation.settle { batches.joined().count >= count }
            watcher.invalidate()
            return batches
        }
    }

    @Test("making, writing and closing a file are events of their own, in order")
    func writing() throws {
        let batches = try batches(atLeast: 3) { _, _ in directory.write("text", to: "file") }
        #expect(batches.joined().map(\.kind) == [.created, .modified, .closedAfterWriting])
        #expect(batches.joined().map(\.name) == ["file", "file", "file"])
        #expect(batches.first?.first?.path == directory["file"])
    }

    @Test("only the kinds that were asked for are reported")
    func kinds() throws {
        let batches = try batches(for: [.closedAfterWriting, .deleted], atLeast: 2) { _, _ in
            directory.write("text", to: "file")
            directory.delete("file")
        }
        #expect(batches.joined().count == 2)
        #expect(Set(batches.joined().map(\.kind)) == [.closedAfterWriting, .deleted])
    }

    @Test("a rename is two events with the same cookie, and two renames have different ones")
    func renames() throws {
        directory.write("", to: "a")
        directory.write("", to: "b")
        let events = try batches(for: .moved) { _, _ in
            directory.move("a", to: directory["c"])
            directory.move("b", to: directory["d"])
        }.flatMap { $0 }
        #expect(events.map(\.kind) == [.movedFrom, .movedTo, .movedFrom, .movedTo])
        #expect(events.map(\.name) == ["a", "c", "b", "d"])
        #expect(events.allSatisfy { $0.cookie != 0 })
        #expect(events[0].cookie == events[1].cookie && events[2].cookie == events[3].cookie)
        #expect(events[0].cookie != events[2].cookie)
    }

    @Test("a rename from one watched directory into another is paired across the watches")
    func renameAcross() throws {
        directory.makeDirectory("other")
        directory.write("", to: "a")
        var other: FileWatch?
        let events = try batches(for: .moved) { watcher, _ in
            other = try watcher.watch(directory["other"], for: .moved)
            directory.move("a", to: directory["other/a"])
        }.flatMap { $0 }
        #expect(events.map(\.kind) == [.movedFrom, .movedTo])
        #expect(Set(events.map(\.cookie)).count == 1)
        #expect(events.last?.watch == other && events.first?.watch != other)
        #expect(events.last?.path == directory["other/a"])
    }

    @Test("a rename to a place that is not watched is one event alone")
    func renameAway() throws {
        let elsewhere = TemporaryDirectory()
        directory.write("", to: "a")
        let batches = try batches(for: .moved) { _, _ in directory.move("a", to: elsewhere["a"]) }
        #expect(batches.map { $0.map(\.kind) } == [[.movedFrom]])
    }

    @Test("attribute changes, and events of directories, are reported as such")
    func attributes() throws {
        directory.write("", to: "file")
        let events = try batches(for: [.attributesChanged, .created]) { _, _ in
            chmod(directory["file"], 0o600)
            directory.makeDirectory("inner")
        }.flatMap { $0 }
        #expect(events.map(\.kind) == [.attributesChanged, .created])
        #expect(events.map(\.isDirectory) == [false, true])
    }

    @Test("a watched file that is deleted reports it, and that its watch has ended")
    func deletedSelf() throws {
        directory.write("", to: "file")
        try withSimulation { simulation in
            var kinds: [FileEvent.Kind] = []
            var paths: Set<String?> = []
            let watcher = try FileWatcher { _, events in
                kinds += events.map(\.kind)
                paths.formUnion(events.map(\.path))
            }
            try watcher.watch(directory["file"], for: .ownFate)
            try simulation.loop.add(watcher, forMode: .default)
            directory.delete("file")
            simulation.advance(by: .seconds(1))
            #expect(kinds == [.deletedSelf, .ignored])
            #expect(paths == [directory["file"]])
            #expect(watcher.watches.isEmpty)
            watcher.invalidate()
        }
    }

    @Test("a removed watch reports nothing more, not even earlier events")
    func unwatch() throws {
        let batches = try batches { watcher, watch in
            directory.write("text", to: "file")
            watcher.unwatch(watch)
            watcher.unwatch(watch)
            #expect(watcher.watches.isEmpty)
        }
        #expect(batches.isEmpty)
    }

    @Test("a directory that was taken back can be watched again")
    func watchAgain() throws {
        let events = try batches { watcher, watch in
            watcher.unwatch(watch)
            directory.write("", to: "before")
            let again = try watcher.watch(directory.path, for: .created)
            #expect(again != watch)
            directory.write("", to: "after")
        }.flatMap { $0 }
        #expect(events.map(\.name) == ["after"])
    }

    @Test("a name that is not UTF-8 is repaired for reading, and kept as it was")
    func invalidName() throws {
        let name: [UInt8] = [0x61, 0xFF, 0x62]
        let events = try batches(for: .created) { _, _ in
            let path = (Array(directory.path.utf8) + [47] + name + [0]).map { CChar(bitPattern: $0) }
            close(open(path, O_CREAT | O_WRONLY, 0o644))
        }.flatMap { $0 }
        #expect(events.map(\.name) == ["a\u{FFFD}b"])
        #expect(events.map(\.nameBytes) == [name])
    }

    @Test("more events than the system keeps end in an overflow event, and later ones are reported again")
    func overflow() throws {
        try withSimulation { simulation in
            var counts: [FileEvent.Kind: Int] = [:]
            var overflow: FileEvent?
            var last: FileEvent?
            let watcher = try FileWatcher { _, events in
                for event in events { counts[event.kind, default: 0] += 1 }
                overflow = events.first { $0.kind == .overflow } ?? overflow
                last = events.last
            }
            try watcher.watch(directory.path, for: [.created, .deleted])
            try simulation.loop.add(watcher, forMode: .default)
            let limit = queueLimit()
            for _ in 0...limit / 2 {
                directory.write("", to: "file")
                directory.delete("file")
            }
            simulation.advance(by: .seconds(1))
            #expect(counts[.overflow] == 1)
            #expect(counts[.created, default: 0] + counts[.deleted, default: 0] == limit)
            #expect(overflow?.watch == nil && overflow?.path == nil)
            #expect(last?.kind == .overflow)

            directory.write("", to: "later")
            simulation.advance(by: .seconds(1))
            #expect(last?.name == "later")
            watcher.invalidate()
        }
    }

    private func queueLimit() -> Int {
        Int(contents(of: "/proc/sys/fs/inotify/max_queued_events").prefix { !$0.isNewline }) ?? 16_384
    }

    @Test("a set of kinds describes its contents")
    func kindsInWords() {
        #expect("\(FileEvent.Kinds([.moved, .created]))" == "created, moved")
        #expect("\(FileEvent.Kinds())" == "none")
        #expect("\(FileEvent.Kinds.all)".split(separator: ",").count == 7)
    }
}
