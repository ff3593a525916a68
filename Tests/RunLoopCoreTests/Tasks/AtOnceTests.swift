@_spi(Ports) import RunLoopCore
import RunLoopKit
import TestSupport
import Testing

@Suite("A task that begins at once", .timeLimit(.minutes(5)))
struct AtOnceTests {
    /// Starts a task that begins at once on a new thread's loop, and runs the loop to its end.
    private func log(
        _ body: nonisolated(nonsending) @escaping @Sendable (RunLoop, Log<String>) async -> Void,
        after began: @escaping @Sendable (RunLoop, Log<String>, Task<Void, Never>) -> Void = { _, _, _ in }
    ) -> [String] {
        let log = Log<String>()
        onThread {
            let loop = RunLoop.current
            let task = start(on: loop) { await body(loop, log) }
            log("returned")
            began(loop, log, task)
            #expect(loop.run(in: .default, until: loop.now + .seconds(60)) == .finished)
            #expect(loop.dump().items.allSatisfy { $0.kind != .task })
        }
        return log.entries
    }

    @discardableResult
    private func start(
        on loop: RunLoop, _ body: nonisolated(nonsending) @escaping () async -> Void
    ) -> Task<Void, Never> {
        loop.taskAtOnce(
            name: "answer", inModes: .common, isolation: nil, origin: RunLoop.Origin(file: #fileID, line: #line), body)
    }

    @Test("a task without a wait has ended when the call returns")
    func noWait() {
        let entries = log { _, log in
            log("body")
        } after: { loop, log, _ in
            log("\(loop.dump().items.count) items")
        }
        #expect(entries == ["body", "returned", "0 items"])
    }

    @Test("a task that waits is an item of the loop until it has ended, and goes on there")
    func wait() {
        let entries = log { loop, log in
            log("begins")
            try? await loop.clock.sleep(for: .milliseconds(2))
            log("ends \(loop.remote.isCurrent)")
        } after: { loop, log, _ in
            let items = loop.dump().items.filter { $0.kind == .task }
            log(items.map { $0.name ?? "-" }.joined())
        }
        #expect(entries == ["begins", "returned", "answer", "ends true"])
    }

    @Test("a cancelled task stops waiting")
    func cancelled() {
        let entries = log { loop, log in
            do { try await loop.clock.sleep(for: .seconds(1_000)) } catch { log("\(error)") }
        } after: { _, _, task in
            task.cancel()
        }
        #expect(entries == ["returned", "CancellationError()"])
    }

    @Test("within another task, it begins before that one goes on, and both end")
    func nested() {
        let entries = log { loop, log in
            loop.task { log("later") }
            start(on: loop) {
                log("inner begins")
                try? await loop.clock.sleep(for: .milliseconds(1))
                log("inner ends")
            }
            log("outer")
            try? await loop.clock.sleep(for: .milliseconds(20))
            log("outer ends")
        }
        #expect(entries == ["inner begins", "outer", "returned", "later", "inner ends", "outer ends"])
    }

    @Test("the end of the loop cancels it")
    func loopEnds() {
        let log = Log<String>()
        let thread = LoopThread(name: "short") { loop in
            start(on: loop) {
                do { try await loop.clock.sleep(for: .seconds(1_000)) } catch { log("\(type(of: error))") }
            }
        }
        thread.stop()
        thread.join()
        #expect(log.entries.count == 1, "\(log.entries)")
    }
}
