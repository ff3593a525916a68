import RunLoopKit
import RunLoopSimulation
import Testing

@testable import RunLoopUnix

@Suite("A daemon stops in stages")
struct DaemonStopTests {
    private func withDaemon(
        drainLimit: Duration = .seconds(10), _ body: (Simulation, Daemon) throws -> Void
    ) throws {
        let manager = try ServiceManager(environment: [:])
        try withSimulation { simulation in
            try body(
                simulation,
                Daemon(loop: simulation.loop, manager: manager, drainLimit: drainLimit, exitLimit: .seconds(2)))
        }
    }

    @Test("stages come in order, and hooks within a stage by order and then as they were added")
    func order() throws {
        try withDaemon { simulation, daemon in
            var log: [String] = []
            for stage in Daemon.Stage.allCases.reversed() {
                for order in [1, 0] {
                    for letter in ["a", "b"] {
                        daemon.onStop(stage, order: order) { log.append("\(stage) \(order)\(letter)") }
                    }
                }
            }
            daemon.stop()
            #expect(log.isEmpty && daemon.state == .stopping(.stopAccepting))
            #expect(daemon.run() == 0)
            #expect(
                log
                    == Daemon.Stage.allCases.flatMap { stage in
                        ["0a", "0b", "1a", "1b"].map { "\(stage) \($0)" }
                    })
            #expect(daemon.state == .stopped(0) && daemon.abandoned.isEmpty)
            #expect(simulation.now == RunLoop.Instant(nanoseconds: 0))
        }
    }

    @Test("a stage waits for all of its hooks, also for those that take time")
    func asynchronous() throws {
        try withDaemon { simulation, daemon in
            let loop = simulation.loop
            let start = loop.now
            var log: [Duration] = []
            for seconds in [4.0, 2.0] {
                daemon.onStop(.drain) { done in
                    loop.perform(afterDelay: .seconds(seconds)) {
                        log.append(loop.now - start)
                        done()
                        done()
                    }
                }
            }
            daemon.onStop(.exit) { log.append(loop.now - start) }
            loop.perform(at: start + .seconds(1)) { daemon.stop() }
            #expect(daemon.run() == 0)
            #expect(log == [.seconds(3), .seconds(5), .seconds(5)])
        }
    }

    @Test("a hook that has not drained by the limit is abandoned, and the last stage still runs")
    func drainLimit() throws {
        try withDaemon { simulation, daemon in
            let loop = simulation.loop
            var exited: RunLoop.Instant?
            daemon.onStop(.stopAccepting, name: "listener") { done in loop.perform(afterDelay: .seconds(4)) { done() } }
            daemon.onStop(.drain, name: "quick") {}
            daemon.onStop(.drain, name: "stuck") { _ in }
            daemon.onStop(.exit) { exited = loop.now }
            let start = loop.now
            daemon.stop()
            #expect(daemon.run() == 0)
            // Ten seconds for both stages together.
            #expect(exited == start + .seconds(10))
            #expect(daemon.abandoned == ["stuck"])
        }
    }

    @Test("a stage that the limit comes before is skipped")
    func skippedStage() throws {
        try withDaemon { simulation, daemon in
            var log: [String] = []
            daemon.onStop(.stopAccepting, name: "listener") { (_: Daemon.Completion) in log.append("listener") }
            daemon.onStop(.drain, name: "connections") { log.append("connections") }
            daemon.onStop(.exit, name: "files") { log.append("files") }
            daemon.stop()
            _ = daemon.run()
            #expect(log == ["listener", "files"])
            #expect(daemon.abandoned == ["listener", "connections"])
        }
    }

    @Test("the last stage has a limit of its own")
    func exitLimit() throws {
        try withDaemon { simulation, daemon in
            daemon.onStop(.exit, name: "stuck") { _ in }
            let start = simulation.now
            daemon.stop()
            #expect(daemon.run() == 0)
            #expect(simulation.now == start + .seconds(2))
            #expect(daemon.abandoned == ["stuck"])
        }
    }

    @Test("a second stop hurries to the last stage, and a third ends it")
    func hurry() throws {
        try withDaemon { simulation, daemon in
            let loop = simulation.loop
            let start = loop.now
            daemon.onStop(.drain, name: "drain") { _ in }
            var exitBegan: RunLoop.Instant?
            daemon.onStop(.exit, name: "exit") { (_: Daemon.Completion) in exitBegan = loop.now }
            for second in 1...3 { loop.perform(at: start + .seconds(second)) { daemon.stop() } }
            #expect(daemon.run() == 0)
            #expect(exitBegan == start + .seconds(2) && loop.now == start + .seconds(3))
            #expect(daemon.abandoned == ["drain", "exit"])
        }
    }

    @Test("hurrying does nothing to a daemon that is not stopping")
    func hurryWhileRunning() throws {
        try withDaemon { simulation, daemon in
            daemon.hurry()
            #expect(daemon.state == .running)
            simulation.loop.perform { daemon.stop() }
            #expect(daemon.run() == 0)
            daemon.hurry()
            daemon.stop(status: 3)
            #expect(daemon.state == .stopped(0))
        }
    }

    @Test("the status is the first that is not zero")
    func status() throws {
        try withDaemon { simulation, daemon in
            daemon.onStop(.drain) { (_: Daemon.Completion) in daemon.stop(status: 7) }
            daemon.onStop(.exit) { daemon.stop(status: 8) }
            daemon.stop()
            #expect(daemon.run() == 7)
        }
    }

    @Test("a hook can be added until its stage begins")
    func lateHooks() throws {
        try withDaemon { simulation, daemon in
            var log: [String] = []
            daemon.onStop(.stopAccepting) {
                #expect(!daemon.onStop(.stopAccepting) { log.append("too late") })
                #expect(daemon.onStop(.drain) { log.append("in time") })
            }
            daemon.stop()
            _ = daemon.run()
            #expect(log == ["in time"])
            #expect(!daemon.onStop(.exit) {})
        }
    }

    @Test("a hook may finish at once, and the stage still waits for the other hooks")
    func doneAtOnce() throws {
        try withDaemon { simulation, daemon in
            var log: [String] = []
            daemon.onStop(.stopAccepting) { done in
                done()
                log.append("first")
            }
            daemon.onStop(.stopAccepting) { log.append("second") }
            daemon.onStop(.drain) { log.append("drain") }
            daemon.stop()
            _ = daemon.run()
            #expect(log == ["first", "second", "drain"])
        }
    }

    @Test("hooks are released when the daemon has stopped, and so is the daemon")
    func release() throws {
        weak var seen: Daemon?
        try withDaemon { simulation, daemon in
            seen = daemon
            daemon.onStop(.exit) { _ = daemon.state }
            daemon.onReload { _ = daemon.state }
            daemon.stop()
            _ = daemon.run()
        }
        #expect(seen == nil)
    }
}
