import Glibc
import RunLoopKit
import RunLoopUnix
import TestSupport
import Testing

@Suite("File events of tasks", .timeLimit(.minutes(5)))
struct FileTaskTests {
    @Test("events before and during a wait arrive in order, and the iteration ends with the watcher")
    func order() async {
        await onLoop { loop in
            let directory = TemporaryDirectory()
            let watcher = try FileWatcher()
            try watcher.watch(directory.path, for: .created)
            directory.write("", to: "a")
            directory.write("", to: "b")
            let task = loop.task {
                var names: [String?] = []
                for try await event in watcher.events(on: loop) {
                    names.append(event.name)
                    if names.count == 2 { directory.write("", to: "c") }
                    if names.count == 3 { watcher.invalidate() }
                }
                return names
            }
            #expect(try await task.value == ["a", "b", "c"])
            for try await _ in watcher.events(on: loop) { Issue.record("it has ended") }
        }
    }

    @Test("no event is lost, wherever waits are cancelled")
    func cancelled() async {
        let seed = UInt64.random(in: 0 ... .max)
        await onLoop { loop in
            let directory = TemporaryDirectory()
            var random = SeededGenerator(seed: seed)
            let watcher = try FileWatcher()
            try watcher.watch(directory.path, for: .created)
            var (made, names): (Int, [String?]) = (0, [])
            while names.count < 300 {
                let task = loop.task {
                    for try await event in watcher.events(on: loop) { return event.name }
                    return nil
                }
                for _ in 0..<Int.random(in: 0...3, using: &random) { await Task.yield() }
                if made < 300 {
                    directory.write("", to: "\(made)")
                    made += 1
                    for _ in 0..<Int.random(in: 0...3, using: &random) { await Task.yield() }
                    task.cancel()
                }
                do { names.append(try await task.value) } catch { #expect(error is CancellationError, "seed \(seed)") }
            }
            #expect(names == (0..<300).map { "\($0)" }, "seed \(seed)")
            watcher.invalidate()
        }
    }

    @Test("an overflow of the system's queue while no task waits is delivered as an element")
    func overflow() async {
        await onLoop { loop in
            let directory = TemporaryDirectory()
            let watcher = try FileWatcher()
            try watcher.watch(directory.path, for: .modified)
            // A queue's length is limited, and it merges an event with an equal one directly before it.
            let limit = Int(contents(of: "/proc/sys/fs/inotify/max_queued_events").prefix { $0.isNumber })!
            let files = (0..<2).map { open(directory["\($0)"], O_CREAT | O_WRONLY, 0o600) }
            for number in 0..<(limit + 10) { #expect(write(files[number % 2], "x", 1) == 1) }
            var (count, last) = (0, FileEvent.Kind.modified)
            for try await event in watcher.events(on: loop) {
                (count, last) = (count + 1, event.kind)
                if last == .overflow { break }
            }
            #expect(count == limit + 1 && last == .overflow)
            for file in files { close(file) }
            watcher.invalidate()
        }
    }

    @Test("a second task is refused, and the end of the loop ends the wait")
    func ends() async {
        await onLoop { loop in
            let directory = TemporaryDirectory()
            let watcher = try FileWatcher()
            try watcher.watch(directory.path)
            let task = loop.task { for try await _ in watcher.events(on: loop) {} }
            await Task.yield()
            await #expect(throws: RunLoop.WaitError.alreadyWaiting("the events of a file watcher")) {
                for try await _ in watcher.events(on: loop) {}
            }
            watcher.invalidate()
            try await task.value
        }
        let results = await endsOfLoop { loop in
            let directory = TemporaryDirectory()
            let watcher = try FileWatcher()
            try watcher.watch(directory.path)
            for try await _ in watcher.events(on: loop) {}
        }
        for result in results {
            #expect(throws: RunLoop.WaitError.loopEnded(loop: "short")) { try result.get() }
        }
    }

    @Test("a watcher for tasks is not added to a loop, and one with a handler is not awaited")
    func misuse() async {
        await #expect(processExitsWith: .failure) {
            try await withLoop { loop in try loop.add(try FileWatcher(), forMode: .common) }
        }
        await #expect(processExitsWith: .failure) {
            try await withLoop { loop in _ = try FileWatcher { _, _ in }.events(on: loop) }
        }
    }
}
