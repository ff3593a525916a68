import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@testable import RunLoopUnix

@Suite("Daemons of tasks", .timeLimit(.minutes(5)))
struct DaemonTaskTests {
    /// Returns the events of a daemon on virtual time, from its start until it has stopped, with their times in
    /// seconds.
    private func story(_ setUp: (Daemon, RunLoop, @escaping (String) -> Void) -> Void) throws -> [String] {
        let manager = try ServiceManager(environment: [:])
        return withSimulation { simulation in
            let loop = simulation.loop
            let daemon = Daemon(loop: loop, manager: manager, drainLimit: .seconds(10), exitLimit: .seconds(2))
            var story: [String] = []
            let note = { (word: String) in story.append("\(word)@\(loop.now.nanoseconds / 1_000_000_000)") }
            setUp(daemon, loop, note)
            note("status \(daemon.run())")
            simulation.runUntilIdle()
            return story + daemon.abandoned.map { "abandoned \($0)" }
        }
    }

    @Test("a stage waits for the task of a hook")
    func waits() throws {
        let story = try story { daemon, loop, note in
            daemon.onStop(.stopAccepting) {
                try? await loop.clock.sleep(for: .seconds(1))
                note("closed")
            }
            daemon.onStop(.drain) {
                try? await loop.clock.sleep(for: .seconds(3))
                note("drained")
            }
            daemon.onStop(.exit) { note("exit") }
            daemon.stop()
        }
        #expect(story == ["closed@1", "drained@4", "exit@4", "status 0@4"])
    }

    @Test("at the limit of its stage a hook's task is cancelled, and the next stage does not wait for it")
    func limits() throws {
        let story = try story { daemon, loop, note in
            daemon.onStop(.drain, name: "stuck") {
                do { try await loop.clock.sleep(for: .seconds(100)) } catch { note("\(error)") }
                try? await loop.task { try await loop.clock.sleep(for: .seconds(1)) }.value
                note("late")
            }
            daemon.onStop(.exit, name: "endless") {
                note("exit")
                do { try await loop.clock.sleep(for: .seconds(100)) } catch { note("\(error)") }
            }
            daemon.stop()
        }
        #expect(
            story == [
                "CancellationError()@10", "exit@10", "late@11", "CancellationError()@12", "status 0@12",
                "abandoned stuck", "abandoned endless",
            ])
    }

    @Test("hurrying cancels the tasks of the stage, and a stop cancels the tasks of a reload")
    func hurry() throws {
        let story = try story { daemon, loop, note in
            daemon.onReload {
                do { try await loop.clock.sleep(for: .seconds(5)) } catch { note("reload: \(error)") }
            }
            daemon.onStop(.drain, name: "drain") {
                do { try await loop.clock.sleep(for: .seconds(5)) } catch { note("drain: \(error)") }
            }
            daemon.reload()
            loop.perform(afterDelay: .seconds(1)) { daemon.stop() }
            loop.perform(afterDelay: .seconds(3)) { daemon.hurry() }
        }
        #expect(
            story == [
                "reload: CancellationError()@1", "drain: CancellationError()@3", "status 0@3", "abandoned drain",
            ])
    }

    @Test("a daemon is awaited, and its loop continues after it")
    func awaited() async {
        await onLoop { loop in
            let daemon = Daemon(loop: loop, manager: try ServiceManager(environment: [:]))
            var log: [String] = []
            daemon.onStop(.drain) {
                await Task.yield()
                log.append("drain")
            }
            daemon.onStop(.exit) { log.append("exit") }
            loop.perform { daemon.stop(status: 3) }
            #expect(try await daemon.run() == 3)
            #expect(log == ["drain", "exit"])
            try await loop.clock.sleep(for: .milliseconds(1))
            #expect(try await daemon.run() == 3)
        }
    }

    @Test("cancelling the task that runs a daemon goes to the last stage, which is waited for")
    func cancelled() async {
        await onLoop { loop in
            let daemon = Daemon(loop: loop, manager: try ServiceManager(environment: [:]))
            var log: [String] = []
            daemon.onStop(.drain, name: "drain") { (_: Daemon.Completion) in log.append("drain") }
            daemon.onStop(.exit) {
                for _ in 0..<10 { await Task.yield() }
                log.append("exit")
            }
            let task = loop.task { try await daemon.run() }
            await Task.yield()
            await #expect(throws: RunLoop.WaitError.alreadyWaiting("the end of a daemon")) { try await daemon.run() }
            task.cancel()
            #expect(try await task.value == 0)
            #expect(log == ["exit"] && daemon.abandoned == ["drain"])
        }
    }

    @Test("the end of the loop ends the wait for a daemon")
    func loopEnds() async {
        let results = await endsOfLoop { loop in
            _ = try await Daemon(loop: loop, manager: try ServiceManager(environment: [:])).run()
        }
        for result in results {
            #expect(throws: RunLoop.WaitError.loopEnded(loop: "short")) { try result.get() }
        }
    }
}
