import Glibc
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@testable import RunLoopUnix

/// Signal sources, child sources and file watchers as items of a loop.
@Suite("Sources of the system as items")
struct SystemSourceTests {
    private let directory = TemporaryDirectory()

    private func sources() throws -> [RunLoop.SystemSource] {
        let child = try ChildProcess.spawn(.named("true"))
        return [
            try SignalSource(signal: .windowChange) { _ in }, ChildSource(child) { _, _ in },
            try FileWatcher(order: 3) { _, _ in },
        ]
    }

    private func add(_ source: RunLoop.SystemSource, to loop: RunLoop) throws {
        switch source {
        case let source as SignalSource: try loop.add(source, forMode: .default)
        case let source as ChildSource: try loop.add(source, forMode: .default)
        case let source as FileWatcher: try loop.add(source, forMode: .default)
        default: fatalError()
        }
    }

    @Test("sources of the system have a name, an order and a description, and a loop knows its own")
    func items() throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            let names = ["signal SIGWINCH", "child ", "file watcher"]
            for (source, name) in zip(try sources(), names) {
                #expect(source.name!.hasPrefix(name))
                #expect(source.description.hasPrefix("descriptor \"\(name)"))
                #expect(source.description.contains("SystemSourceTests.swift:"))
                #expect(!loop.contains(source, forMode: .default))
                try add(source, to: loop)
                #expect(loop.contains(source, forMode: .default))
                source.name = "mine"
                #expect(loop.dump().items.map(\.name) == ["mine"])
                loop.remove(source, forMode: .default)
                #expect(source.isValid && loop.dump().items.isEmpty)
            }
            #expect(try sources().map(\.order) == [0, .max, 3])
        }
    }

    @Test("the end of their loop, or a call, invalidates sources, and calls their invalidation handler once")
    func invalidation() throws {
        var invalidated = 0
        var kept: [RunLoop.SystemSource] = []
        try withSimulation { simulation in
            for endsWithLoop in [true, false] {
                for source in try sources() {
                    source.invalidationHandler = { invalidated += 1 }
                    try add(source, to: simulation.loop)
                    if endsWithLoop { kept.append(source) } else { source.invalidate() }
                    #expect(source.isValid == endsWithLoop)
                }
            }
            #expect(invalidated == 3)
        }
        #expect(invalidated == 6 && kept.allSatisfy { !$0.isValid })
    }

    @Test("a rate limit holds a watcher back; the events wait in the queue")
    func rateLimit() throws {
        try withSimulation { simulation in
            var names: [String?] = []
            var dates: [Duration] = []
            let start = simulation.now
            let watcher = try FileWatcher { _, events in
                names += events.map(\.name)
                dates.append(simulation.now - start)
            }
            watcher.rateLimit = RateLimit(interval: .seconds(10), burst: 1)
            try watcher.watch(directory.path, for: .created)
            try simulation.loop.add(watcher, forMode: .default)
            for name in ["a", "b", "c"] {
                directory.write("", to: name)
                simulation.advance(by: .seconds(1))
            }
            simulation.advance(by: .seconds(20))
            #expect(names == ["a", "b", "c"] && dates == [.zero, .seconds(10)])
            watcher.invalidate()
        }
    }

    @Test("a child source is valid in its handler, and not after it")
    func childSource() throws {
        let child = try ChildProcess.spawn(.named("true"))
        let loop = RunLoop.current
        var wasValid = false
        weak var seen: ChildSource?
        let source = ChildSource(child) { _, _ in wasValid = seen!.isValid }
        seen = source
        try loop.add(source, forMode: .default)
        #expect(loop.run(in: .default, until: loop.now + .seconds(30)) == .finished)
        #expect(wasValid && !source.isValid)
    }
}
