import Glibc
@_spi(Ports) import RunLoopCore
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@testable import RunLoopUnix

@Suite("A daemon's run", .timeLimit(.minutes(15)))
struct DaemonRunTests {
    @Test("the service manager is notified of the start, of reloads and of the stop, in order")
    func messages() throws {
        let receiver = try NotifyReceiver()
        let manager = try receiver.manager()
        withSimulation { simulation in
            let daemon = Daemon(loop: simulation.loop, manager: manager)
            var duringReload: [String] = []
            daemon.onReload { duringReload = receiver.messages() }
            simulation.loop.perform(at: simulation.now + .seconds(1)) { daemon.reload() }
            simulation.loop.perform(at: simulation.now + .seconds(2)) { daemon.stop() }
            #expect(daemon.run() == 0)
            #expect(duringReload.count == 2)
            #expect(duringReload.first == "READY=1")
            #expect(duringReload.last?.hasPrefix("RELOADING=1\nMONOTONIC_USEC=") == true)
            #expect(receiver.messages() == ["READY=1", "STOPPING=1"])
        }
    }

    @Test("reloads that come during a reload make one more follow; during a stop none begins")
    func reloads() throws {
        let manager = try ServiceManager(environment: [:])
        withSimulation { simulation in
            let loop = simulation.loop
            let daemon = Daemon(loop: loop, manager: manager)
            var reloads: [Duration] = []
            let start = loop.now
            daemon.onReload { done in
                reloads.append(loop.now - start)
                loop.perform(afterDelay: .seconds(3)) { done() }
            }
            for second in [1, 2, 3] { loop.perform(at: start + .seconds(second)) { daemon.reload() } }
            loop.perform(at: start + .seconds(2)) { #expect(daemon.state == .reloading) }
            loop.perform(at: start + .seconds(8)) {
                #expect(daemon.state == .running)
                daemon.stop()
                daemon.reload()
            }
            #expect(daemon.run() == 0)
            #expect(reloads == [.seconds(1), .seconds(4)])
        }
    }

    @Test("a stop does not wait for a reload that is under way")
    func stopDuringReload() throws {
        let receiver = try NotifyReceiver()
        let manager = try receiver.manager()
        withSimulation { simulation in
            let daemon = Daemon(loop: simulation.loop, manager: manager)
            daemon.onReload { done in simulation.loop.perform(afterDelay: .seconds(5)) { done() } }
            simulation.loop.perform(at: simulation.now + .seconds(1)) { daemon.reload() }
            simulation.loop.perform(at: simulation.now + .seconds(2)) { daemon.stop() }
            let start = simulation.now
            #expect(daemon.run(announcesReady: false) == 0)
            #expect(simulation.now == start + .seconds(2))
            #expect(receiver.messages().map { $0.prefix(9) } == ["RELOADING", "STOPPING="])
        }
    }

    @Test("a message that cannot be sent to the manager is reported, and the daemon continues")
    func errors() throws {
        let manager = try ServiceManager(environment: ["NOTIFY_SOCKET": "/nonexistent/notify"])
        withSimulation { simulation in
            let daemon = Daemon(loop: simulation.loop, manager: manager)
            var errors = 0
            daemon.errorHandler = { _, _ in errors += 1 }
            simulation.loop.perform(at: simulation.now + .seconds(1)) { daemon.stop() }
            #expect(daemon.run() == 0)
            #expect(errors == 2)
        }
    }

    @Test("a daemon that stops within nested runs ends them, whatever their mode, and then its own")
    func nestedRuns() throws {
        let manager = try ServiceManager(environment: [:])
        withSimulation { simulation in
            let loop = simulation.loop
            loop.addCommonMode("panel")
            let keepAlive = CustomSource()
            loop.add(keepAlive, forMode: "panel")
            let daemon = Daemon(loop: loop, manager: manager)
            var results: [RunLoop.RunResult] = []
            let start = loop.now
            loop.perform(at: start + .seconds(1)) {
                loop.perform(at: start + .seconds(2)) {
                    loop.perform(inModes: "panel") { daemon.stop() }
                    results.append(loop.run(in: "panel"))
                }
                results.append(loop.run(in: .default, until: start + .seconds(100)))
            }
            #expect(daemon.run() == 0)
            #expect(results == [.stopped, .stopped])
            #expect(loop.now == start + .seconds(2))
        }
    }

    @Test("a stop of the run counts as a request, and a thread that is to end hurries")
    func stopOfThread() throws {
        let manager = try ServiceManager(environment: [:])
        let result = Locked<(Int32, [String])?>(nil)
        let thread = LoopThread(name: "daemon") { loop in
            let daemon = Daemon(loop: loop, manager: manager)
            daemon.onStop(.drain, name: "stuck") { _ in }
            let status = daemon.run()
            result.withLock { $0 = (status, daemon.abandoned) }
        }
        thread.stop()
        thread.join()
        #expect(result.withLock { $0?.0 } == 0)
        #expect(result.withLock { $0?.1 } == ["stuck"])
    }

    @Test("other threads stop and reload a daemon through its remote, and finish its hooks")
    func otherThreads() throws {
        let manager = try ServiceManager(environment: [:])
        let loop = RunLoop.current
        let daemon = Daemon(loop: loop, manager: manager)
        var reloads = 0
        daemon.onReload { reloads += 1 }
        let status = withLoopThread { thread in
            daemon.onStop(.drain) { done in thread.remote.perform { _ in done() } }
            let remote = daemon.remote
            thread.remote.perform { _ in
                remote.hurry()
                remote.reload()
                remote.stop(status: 4)
            }
            return daemon.run()
        }
        #expect(status == 4)
        #expect(reloads == 0 || reloads == 1)
        #expect(daemon.abandoned.isEmpty)
        // The daemon has stopped, and its loop continues without it.
        #expect(loop.run(in: .default, until: .distantPast) != .stopped)
    }

    @Test("a remote of a daemon that has gone does nothing")
    func remoteOfNobody() throws {
        let manager = try ServiceManager(environment: [:])
        withSimulation { simulation in
            let remote = Daemon(loop: simulation.loop, manager: manager).remote
            remote.stop()
            simulation.advance(by: .seconds(1))
        }
    }

    @Test("a manager that does not read delays nothing, and hears everything in order when it reads again")
    func busyManager() throws {
        let receiver = try NotifyReceiver()
        let manager = try receiver.manager()
        receiver.fill(manager)
        withSimulation { simulation in
            let daemon = Daemon(loop: simulation.loop, manager: manager)
            var errors: [String] = []
            daemon.errorHandler = { errors.append("\($1) \(simulation.now)") }
            let loop = simulation.loop
            loop.perform(at: ms(1_000)) { daemon.reload() }
            loop.perform(at: ms(2_000)) { _ = receiver.messages() }
            var heard: [String] = []
            loop.perform(at: ms(2_100)) { heard = receiver.messages().map { String($0.prefix { $0 != "\n" }) } }
            loop.perform(at: ms(3_000)) { daemon.stop() }
            #expect(daemon.run() == 0)
            #expect(simulation.now == ms(3_000))
            #expect(heard == ["READY=1", "RELOADING=1", "READY=1"])
            #expect(receiver.messages() == ["STOPPING=1"])
            #expect(errors == ["\(ServiceManagerError.busy) 0.000000000"], "told once")
        }
    }

    @Test("a manager that never reads is given up when the daemon has stopped, and this is reported")
    func deafManager() throws {
        let receiver = try NotifyReceiver()
        let manager = try receiver.manager()
        receiver.fill(manager)
        withSimulation { simulation in
            let daemon = Daemon(loop: simulation.loop, manager: manager)
            var lines: [String] = []
            simulation.loop.trace = { if case .ignored = $0 { lines.append("\($0)") } }
            simulation.loop.perform(at: ms(3_000)) { daemon.stop() }
            #expect(daemon.run() == 0)
            let line = "ignored: the service manager was not notified: \(ServiceManagerError.busy)"
            #expect(lines == [line, line] && simulation.now == ms(3_000))
            #expect(simulation.loop.run(in: .default) == .finished, "nothing of it stays in the loop")
        }
    }

    @Test(
        "limits may be as long as a time can be",
        arguments: [Duration(attoseconds: .max), .seconds(Int64.max), .zero])
    func absurdLimits(limit: Duration) throws {
        let manager = try ServiceManager(environment: [:])
        withSimulation { simulation in
            let daemon = Daemon(loop: simulation.loop, manager: manager, drainLimit: limit, exitLimit: limit)
            daemon.onStop(.drain) { done in simulation.loop.perform(afterDelay: .seconds(1)) { done() } }
            daemon.stop()
            #expect(daemon.run() == 0)
            #expect(daemon.abandoned.isEmpty == (limit > .zero))
        }
    }

    @Test("a service's signals have their intended effects, also before it runs, and go with the daemon")
    func signals() async {
        await #expect(processExitsWith: .success) {
            let states = onThread { () -> [String] in
                let loop = RunLoop.current
                var states: [String] = []
                var daemon: Daemon? = Daemon(loop: loop, manager: try! ServiceManager(environment: [:]))
                try! daemon!.handleSignals { states.append("\($0) \(daemon!.state)") }
                precondition(disposition(of: .pipe) == 1, "SIGPIPE is not ignored")
                daemon!.onReload { states.append("reload") }
                daemon!.onStop(.drain, name: "never") { _ in raise(SIGINT) }
                raise(SIGHUP)
                loop.perform(afterDelay: .milliseconds(5)) { raise(SIGTERM) }
                states.append("status \(daemon!.run()), abandoned \(daemon!.abandoned)")
                daemon = nil
                precondition(disposition(of: .terminate) == 0 && disposition(of: .hangUp) == 0)
                return states
            }
            let expected = [
                "SIGHUP running", "reload", "SIGTERM running", "SIGINT stopping(RunLoopUnix.Daemon.Stage.drain)",
                "status 0, abandoned [\"never\"]",
            ]
            precondition(states == expected, "\(states)")
        }
    }

    @Test("to have a daemon handle its signals twice, so that the first would hurry it, is a mistake")
    func signalsTwice() async {
        await #expect(processExitsWith: .failure) {
            let manager = try ServiceManager(environment: [:])
            onThread {
                let daemon = Daemon(loop: .current, manager: manager)
                try! daemon.handleSignals()
                do { try daemon.handleSignals() } catch { _exit(0) }
            }
        }
    }

    @Test("a daemon that nothing can stop on virtual time ends the process with a sentence")
    func starved() async {
        await #expect(processExitsWith: .failure) {
            let manager = try ServiceManager(environment: [:])
            func run() {
                withSimulation { simulation in
                    _ = Daemon(loop: simulation.loop, manager: manager).run()
                }
            }
            run()
        }
    }
}
