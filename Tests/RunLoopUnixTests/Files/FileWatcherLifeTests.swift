import Glibc
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@testable import RunLoopUnix

@Suite("File watchers in their loop")
struct FileWatcherLifeTests {
    private let directory = TemporaryDirectory()

    @Test("a failure to watch a path gives its reason")
    func errors() throws {
        let watcher = try FileWatcher { _, _ in }
        #expect(throws: FileWatchError.noSuchFile(directory["none"])) { try watcher.watch(directory["none"]) }
        #expect(throws: FileWatchError.noSuchFile("/tmp\0")) { try watcher.watch("/tmp\0") }
        #expect(throws: FileWatchError.noSuchFile("")) { try watcher.watch("") }
        try watcher.watch(directory.path)
        #expect(throws: FileWatchError.alreadyWatched("\(directory.path)/.")) {
            try watcher.watch("\(directory.path)/.", for: .created)
        }
        #expect(watcher.watches.map(\.path) == [directory.path])
        watcher.invalidate()
    }

    @Test("the limits that can be reached name the setting that raises them")
    func limits() {
        #expect("\(FileWatchError.tooManyWatches("/x"))".contains("fs.inotify.max_user_watches"))
        #expect("\(FileWatchError.tooManyWatchers)".contains("fs.inotify.max_user_instances"))
    }

    @Test("watchers beyond the process's limit are refused as such")
    func tooManyWatchers() async {
        await #expect(processExitsWith: .success) {
            var limit = rlimit()
            getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            limit.rlim_cur = 0
            setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            do throws(FileWatchError) {
                _ = try FileWatcher { _, _ in }
                _exit(1)
            } catch {
                // Not `exit`: a leak checker that cannot open files would change the status.
                _exit(error == .tooManyWatchers ? 0 : 2)
            }
        }
    }

    @Test("a watcher and sources released without ever having been added are reported once, and no others are")
    func neverAdded() throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            var ignored: [String] = []
            loop.trace = { if case .ignored(let what) = $0 { ignored.append(what) } }
            func use(_ add: Bool) throws {
                let watcher = try FileWatcher { _, _ in }
                let signals = try SignalSource(signal: .windowChange) { _ in }
                let child = try ChildProcess.spawn(.named("true"))
                let ends = ChildSource(child) { _, _ in }
                guard add else { return }
                try loop.add(watcher, forMode: .default)
                try loop.add(signals, forMode: .default)
                try loop.add(ends, forMode: .default)
                loop.remove(watcher, forMode: .default)
                loop.remove(signals, forMode: .default)
                loop.remove(ends, forMode: .default)
            }
            try use(true)
            #expect(ignored.isEmpty)
            try use(false)
            #expect(ignored.count == 3)
            for kind in ["descriptor \"file watcher\"", "descriptor \"signal SIGWINCH\"", "descriptor \"child "] {
                #expect(ignored.contains { $0.hasPrefix(kind) }, "\(ignored)")
            }
        }
    }

    @Test("events wait for a mode of the watcher to run")
    func modes() throws {
        try withSimulation { simulation in
            var names: [String?] = []
            let watcher = try FileWatcher { _, events in names += events.map(\.name) }
            try watcher.watch(directory.path, for: .created)
            try simulation.loop.add(watcher, forMode: .default)
            simulation.loop.add(CustomSource(), forMode: "panel")
            directory.write("", to: "file")
            simulation.loop.run(in: "panel", until: simulation.now + .seconds(1))
            #expect(names.isEmpty)
            #expect(simulation.loop.statistics.parks <= 1)
            simulation.loop.run(in: .default, until: simulation.now + .seconds(1))
            #expect(names == ["file"])
            watcher.invalidate()
        }
    }

    @Test("a watcher out of its loop keeps its watches, and reports the missed events when it is back")
    func removal() throws {
        try withSimulation { simulation in
            var names: [String?] = []
            let watcher = try FileWatcher { _, events in names += events.map(\.name) }
            try watcher.watch(directory.path, for: .created)
            try simulation.loop.add(watcher, forMode: .default)
            simulation.loop.remove(watcher, forMode: .default)
            directory.write("", to: "file")
            simulation.advance(by: .seconds(1))
            #expect(names.isEmpty)
            try simulation.loop.add(watcher, forMode: .default)
            simulation.advance(by: .seconds(1))
            #expect(names == ["file"])
            watcher.invalidate()
        }
    }

    @Test("the loop keeps a watcher while it is scheduled, and no longer")
    func lifetime() throws {
        try withSimulation { simulation in
            weak var seen: FileWatcher?
            func schedule() throws {
                let watcher = try FileWatcher { _, _ in }
                try simulation.loop.add(watcher, forMode: .default)
                seen = watcher
            }
            try schedule()
            #expect(seen != nil)
            if let watcher = seen { simulation.loop.remove(watcher, forMode: .default) }
            #expect(seen == nil)
            try schedule()
            seen?.invalidate()
            #expect(seen == nil)
        }
    }

    @Test("a watcher that is invalidated in its handler is called no more and closes its descriptor")
    func invalidationInHandler() throws {
        try withSimulation { simulation in
            var calls = 0
            let watcher = try FileWatcher { watcher, _ in
                calls += 1
                watcher.invalidate()
                watcher.invalidate()
            }
            try watcher.watch(directory.path)
            try simulation.loop.add(watcher, forMode: .default)
            directory.write("", to: "file")
            simulation.advance(by: .seconds(1))
            directory.write("", to: "file")
            simulation.advance(by: .seconds(1))
            #expect(calls == 1 && !watcher.isValid)
            #expect(simulation.loop.run(in: .default) == .finished)
        }
    }

    @Test("on the real clock an event wakes the loop")
    func realLoop() throws {
        let loop = RunLoop.current
        let files: RunLoop.Mode = "files"
        var names: [String?] = []
        let watcher = try FileWatcher { _, events in
            names += events.map(\.name)
            loop.stop()
        }
        try watcher.watch(directory.path, for: .created)
        try loop.add(watcher, forMode: RunLoop.Modes(files))
        let writer = Timer(timeInterval: .milliseconds(5), repeats: false) { [directory] _ in
            directory.write("", to: "file")
        }
        loop.add(writer, forMode: RunLoop.Modes(files))
        #expect(loop.run(in: files, until: loop.now + .seconds(30)) == .stopped)
        #expect(names == ["file"])
        loop.remove(watcher, forMode: RunLoop.Modes(files))
        #expect(loop.run(in: files) == .finished)
    }

    @Test("a watch on an invalidated watcher is a mistake that ends the process")
    func watchAfterEnd() async {
        await #expect(processExitsWith: .failure) {
            let watcher = try FileWatcher { _, _ in }
            watcher.invalidate()
            try watcher.watch("/tmp")
        }
    }
}
