import Glibc
@_spi(Ports) import RunLoopCore
import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopUnix
import TestSupport
import Testing

@testable import Minute

private func failSilently() {
    withSimulation { simulation in
        SimulatedNetwork(simulation).addHost("server") { _ in throw SystemError("begin", errno: EPERM) }
        simulation.runUntilIdle()
    }
}

@Suite("Simulated hosts")
struct HostTests {
    @Test("a program runs on its host's main loop; its process ends when nothing is left in the loop")
    func life() {
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            let log = Locked<[String]>([])
            let host = network.addHost("worker") { loop in
                log.withLock {
                    $0.append("begin \(RunLoop.main === loop) \(loop.wallTime - .init(secondsSince1970: 978_307_200))")
                }
                loop.perform(afterDelay: .seconds(5)) { log.withLock { $0.append("end") } }
            }
            #expect(host.isRunning && host.addresses == ["10.255.0.2", "fdff::2"])
            simulation.advance(by: .seconds(1))
            #expect(host.isRunning && log.withLock { $0.count } == 1)
            simulation.advance(by: .seconds(10))
            #expect(!host.isRunning && host.remote == nil && "\(host.ending!)" == "returned")
            host.start()
            simulation.advance(by: .seconds(10))
            #expect(log.withLock(\.self) == ["begin true 0.0 seconds", "end", "begin true 11.0 seconds", "end"])
        }
    }

    @Test("hosts without addresses get none that another host is given, whatever the order")
    func addresses() {
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            let given = [nil, ["10.0.0.1", "fd00::1"], nil, ["10.0.0.2"], ["10.255.0.4", "fdff::5"], nil]
            let hosts = given.enumerated().map { network.addHost("host \($0)", addresses: $1) { _ in } }
            let expected = ["10.255.0.2", "10.0.0.1", "10.255.0.3", "10.0.0.2", "10.255.0.4", "10.255.0.6"]
            #expect(hosts.map(\.addresses[0]) == expected)
            #expect(Set(hosts.flatMap(\.addresses)).count == hosts.map(\.addresses.count).reduce(0, +))
        }
    }

    @Test("two hosts with one address are refused with their names, and with the ranges of hosts without one")
    func sameAddress() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            func add() {
                withSimulation { simulation in
                    let network = SimulatedNetwork(simulation)
                    for name in ["one", "two"] { network.addHost(name, addresses: ["10.0.0.1"]) { _ in } }
                }
            }
            add()
        }
        let isSaid = says(
            "the hosts \"one\" and \"two\" have the same address, 10.0.0.1; give each one its own", result)
        #expect(isSaid)
    }

    @Test("an error of the program ends its process, and is reported")
    func failures() {
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            let host = network.addHost("worker", mayFail: true) { loop in
                loop.perform(afterDelay: .seconds(5)) {}
                throw SystemError("begin", errno: EPERM)
            }
            simulation.advance(by: .seconds(1))
            #expect(!host.isRunning && simulation.hostFailures.isEmpty)
            guard case .failed(let error)? = host.ending else {
                Issue.record("it ended otherwise")
                return
            }
            #expect(error as? SystemError == SystemError("begin", errno: EPERM))
        }
    }

    @Test("a simulation throws the error of a program whose host was not to fail")
    func unexpectedFailures() throws {
        let failure = #expect(throws: Simulation.HostError.self) {
            try withSimulation { simulation in
                let network = SimulatedNetwork(simulation)
                network.addHost("client") { loop in loop.perform(afterDelay: .seconds(5)) {} }
                network.addHost("server") { _ in
                    simulation.spend(.seconds(1))
                    throw SystemError("begin", errno: EPERM)
                }
                simulation.runUntilIdle()
                guard simulation.hostFailures.count == 1 else { throw SystemError("count", errno: EINVAL) }
            }
        }
        #expect(
            failure?.description
                == "host \"server\" failed at 1.000000000: begin: Operation not permitted (errno 1)")
        // The test's own error takes precedence.
        #expect(throws: SystemError("own", errno: EIO)) {
            try withSimulation { simulation in
                SimulatedNetwork(simulation).addHost("server") { _ in throw SystemError("begin", errno: EPERM) }
                simulation.runUntilIdle()
                throw SystemError("own", errno: EIO)
            }
        }
    }

    @Test("a simulation whose body cannot throw traps with the error of a host")
    func failuresTrap() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { failSilently() }
        #expect(says("host \"server\" failed at 0.000000000: begin", result))
    }

    @Test("a process that ends closes its connections; its threads end")
    func ends() {
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            let server = network.addHost("server", addresses: ["10.1.0.1"]) { loop in
                try echo(on: loop)
                _ = LoopThread(name: "helper") { loop in
                    loop.add(Timer(timeInterval: .seconds(1), repeats: true) { _ in }, forMode: .default)
                }
            }
            let client = Client(simulation, to: "server")
            simulation.advance(by: .seconds(10))
            server.remote?.perform { $0.stop() }
            simulation.advance(by: .seconds(10))
            #expect(!server.isRunning)
            #expect(client.events.last == "10000 ended")
            server.start()
            let again = Client(simulation, to: "server")
            simulation.advance(by: .seconds(10))
            #expect(again.connection?.isOpen == true)
        }
    }

    @Test("a host that crashes runs nothing more, notifies no peer, and starts again with nothing")
    func crashes() {
        final class Witness: Sendable {
            let log: Locked<[String]>
            init(_ log: Locked<[String]>) { self.log = log }
            deinit { log.withLock { $0.append("deinit") } }
        }
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            let log = Locked<[String]>([])
            let server = network.addHost("server", addresses: ["10.1.0.1"]) { loop in
                let witness = Witness(log)
                defer { log.withLock { $0.append("left \(witness)") } }
                try echo(on: loop)
                let helper = LoopThread(name: "helper") { loop in
                    loop.add(
                        Timer(timeInterval: .seconds(1), repeats: true) { _ in
                            log.withLock { $0.append("tick") }
                        }, forMode: .default)
                }
                helper.join()
            }
            simulation.advance(by: .milliseconds(3_500))
            #expect(log.withLock(\.self) == ["tick", "tick", "tick"])
            server.crash()
            #expect(!server.isRunning)
            simulation.advance(by: .seconds(10))
            #expect(log.withLock(\.self) == ["tick", "tick", "tick"])
            server.start()
            simulation.advance(by: .milliseconds(1_500))
            #expect(log.withLock { $0.count } == 4)
        }
    }

    @Test("the peer of a crashed host gets a reset when it writes after the restart, and no error before")
    func halfOpen() {
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            let server = network.addHost("server", addresses: ["10.1.0.1"], program: echo)
            let silent = Client(simulation, to: "server")
            let writer = Client(simulation, to: "server")
            simulation.advance(by: .seconds(1))
            server.crash()
            writer.connection?.write([1])
            simulation.advance(by: .seconds(60))
            #expect(writer.connection?.isOpen == true)
            server.start()
            simulation.advance(by: .seconds(120))
            #expect(writer.events.last?.contains("Connection reset by peer") == true)
            #expect(silent.connection?.isOpen == true)
            silent.connection?.write([1])
            simulation.advance(by: .seconds(1))
            #expect(silent.events.last?.contains("Connection reset by peer") == true)
        }
    }

    @Test("a host that crashes itself does so at once")
    func suicide() {
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            let log = Locked<[String]>([])
            let own = Locked<SimulatedHost?>(nil)
            let host = network.addHost("host") { loop in
                loop.perform(afterDelay: .seconds(1)) {
                    log.withLock { $0.append("before") }
                    own.withLock(\.self)!.crash()
                    log.withLock { $0.append("after") }
                }
            }
            own.withLock { $0 = host }
            simulation.advance(by: .seconds(10))
            #expect(log.withLock(\.self) == ["before"] && !host.isRunning)
            #expect(simulation.now == .init(nanoseconds: 10_000_000_000))
            own.withLock { $0 = nil }
        }
    }

    @Test("hosts are separate: timer names, values of a world and random numbers of one are not seen on another")
    func separation() {
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            let numbers = Locked<[String: UInt64]>([:])
            for name in ["one", "two"] {
                network.addHost(name) { loop in
                    numbers.withLock { $0[name] = loop.randomNumbers.next() }
                    #expect(RunLoop.main === loop)
                }
            }
            simulation.advance(by: .seconds(1))
            #expect(numbers.withLock { $0.count == 2 && $0["one"] != $0["two"] })
        }
    }

    @Test("a simulation ends while hosts run, wait and are down")
    func end() {
        for seed: UInt64 in 0..<5 {
            withSimulation(seed: seed) { simulation in
                let network = SimulatedNetwork(simulation)
                let server = network.addHost("server", addresses: ["10.1.0.1"], program: echo)
                network.addHost("other") { loop in
                    Connection.connect(host: "server", port: 7, on: loop) { result in
                        let connection = try! result.get()
                        try! connection.start()
                        connection.write([UInt8](repeating: 1, count: 1_000_000))
                    }
                }
                simulation.advance(by: .milliseconds(Int64(seed)))
                if seed == 3 { server.crash() }
            }
        }
    }

    // MARK: Signals and the service manager

    /// A daemon that takes a second to stop and to reload.
    private static func daemon(_ loop: RunLoop, _ log: Locked<[String]>) throws {
        let daemon = Daemon(loop: loop, manager: try ServiceManager())
        try daemon.handleSignals { text in log.withLock { $0.append("\(text)") } }
        daemon.onReload(name: "files") { done in _ = loop.perform(afterDelay: .seconds(1)) { done() } }
        daemon.onStop(.drain, name: "clients") { done in _ = loop.perform(afterDelay: .seconds(1)) { done() } }
        let watchdog = Watchdog(daemon.manager, loop: loop)
        let status = daemon.run()
        watchdog?.invalidate()
        log.withLock { $0.append("status \(status)") }
    }

    @Test("a daemon is ready, reloads and stops as its service manager asks; signs of life come in time")
    func service() {
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            let log = Locked<[String]>([])
            let service = SimulatedHost.Service(watchdogPeriod: .seconds(30))
            let host = network.addHost("daemon", service: service) { try Self.daemon($0, log) }
            simulation.advance(by: .seconds(600))
            #expect(host.messages.map(\.text) == ["READY=1"] && host.isRunning)
            host.send(.hangUp)
            simulation.advance(by: .seconds(10))
            let reload = host.messages.dropFirst().map(\.description)
            #expect(
                reload == ["600.000000000 RELOADING=1\nMONOTONIC_USEC=600000000", "601.000000000 READY=1"])
            host.send(.terminate)
            simulation.advance(by: .seconds(10))
            #expect(host.messages.last?.description == "610.000000000 STOPPING=1")
            #expect(!host.isRunning && "\(host.ending!)" == "returned")
            #expect(log.withLock(\.self).last == "status 0")
        }
    }

    @Test("a program that returns the status of its daemon ends its process with it, whatever is left in its loop")
    func status() {
        let failure = #expect(throws: Simulation.HostError.self) {
            try withSimulation { simulation in
                let network = SimulatedNetwork(simulation)
                let service = SimulatedHost.Service(watchdogPeriod: .seconds(30))
                let hosts = ["good", "bad", "broken"].map { name in
                    network.addDaemon(name, service: service, mayFail: name == "bad") { loop in
                        let daemon = Daemon(loop: loop, manager: try ServiceManager())
                        try daemon.handleSignals()
                        try loop.dump(on: .user1)
                        _ = Watchdog(daemon.manager, loop: loop)
                        loop.perform(afterDelay: .seconds(100)) { daemon.stop(status: name == "good" ? 0 : 0x103) }
                        return daemon.run()
                    }
                }
                simulation.advance(by: .seconds(99))
                #expect(hosts.map(\.isRunning) == [true, true, true])
                #expect(simulation.runUntilIdle() == .done)
                #expect(simulation.now < .init(nanoseconds: 101_000_000_000))
                let endings = hosts.map { "\($0.ending!)" }
                #expect(endings == ["exited(0)", "exited(3)", "exited(3)"])
                if simulation.hostFailures.isEmpty { throw CancellationError() }
            }
        }
        #expect(failure?.description == "host \"broken\" failed at 100.000000000: exited with code 3")
    }

    @Test("a watchdog does not keep a host running whose daemon has stopped")
    func watchdogOfStopped() {
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            let service = SimulatedHost.Service(watchdogPeriod: .seconds(30))
            let host = network.addHost("daemon", service: service) { loop in
                let daemon = Daemon(loop: loop, manager: try ServiceManager())
                _ = Watchdog(daemon.manager, loop: loop)
                loop.perform(afterDelay: .seconds(100)) { daemon.stop() }
                _ = daemon.run()
            }
            #expect(simulation.runUntilIdle() == .done)
            #expect(!host.isRunning && simulation.now == .init(nanoseconds: 100_000_000_000))
        }
    }

    @Test("a loop that is busy for too long starves the watchdog: its process is ended")
    func starvation() {
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            let log = Locked<[String]>([])
            let service = SimulatedHost.Service(watchdogPeriod: .seconds(30))
            let host = network.addHost("daemon", service: service) { loop in
                loop.perform(afterDelay: .seconds(100)) { simulation.spend(.seconds(31)) }
                try Self.daemon(loop, log)
            }
            simulation.advance(by: .seconds(600))
            #expect(!host.isRunning && "\(host.ending!)" == "starvedWatchdog" && log.withLock(\.isEmpty))
            host.start()
            simulation.advance(by: .seconds(60))
            #expect(host.isRunning && host.ending == nil)
        }
    }

    @Test("signals: counted, ignored, harmless, and those that end a process, whose system closes its connections")
    func signals() {
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            let counts = Locked<[Int]>([])
            let host = network.addHost("server", addresses: ["10.1.0.1"]) { loop in
                try echo(on: loop)
                try Signal.ignore(.hangUp)
                let source = try SignalSource(signal: .user1) { source in counts.withLock { $0.append(source.count) } }
                try loop.add(source, forMode: .common)
            }
            let client = Client(simulation, to: "server")
            simulation.advance(by: .seconds(1))
            for signal in [Signal.user1, .user1, .hangUp, .child, .user1] { host.send(signal) }
            simulation.advance(by: .seconds(1))
            host.send(.user1)
            simulation.advance(by: .seconds(1))
            #expect(counts.withLock(\.self) == [3, 1] && host.isRunning)
            host.send(.kill)
            simulation.advance(by: .seconds(1))
            #expect(!host.isRunning && "\(host.ending!)" == "killed(SIGKILL)")
            #expect(client.connection?.isOpen == false)
            // The real process is not affected.
            host.start()
            simulation.advance(by: .seconds(1))
            host.send(.user2)
            #expect(!host.isRunning && "\(host.ending!)" == "killed(SIGUSR2)")
        }
    }

    @Test("each host has a clock of its own, which drifts, is set, and continues while the host is down")
    func clocks() {
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            let start = simulation.wallTime
            let times = Locked<[Duration]>([])
            let host = network.addHost("clock") { loop in
                let timer = WallTimer(at: start + .seconds(3_600)) { _ in
                    times.withLock { $0.append(loop.wallTime - start) }
                }
                loop.add(timer, forMode: .common)
            }
            host.setWallClockDrift(billionths: 1_000_000)
            simulation.advance(by: .seconds(1_000))
            #expect(host.wallTime - start == .seconds(1_001) && simulation.wallTime - start == .seconds(1_000))
            host.crash()
            simulation.advance(by: .seconds(1_000))
            #expect(host.wallTime - start == .seconds(2_002))
            host.start()
            host.wallTime = host.wallTime + .seconds(1_500)
            simulation.advance(by: .seconds(200))
            #expect(times.withLock { $0.count } == 1 && times.withLock { $0[0] } >= .seconds(3_600))
        }
    }

    // MARK: Repeatable

    @Test("equal seeds give equal traces, and different seeds different ones")
    func seeds() {
        let first = Minute.trace(seed: 1)
        #expect(first.count > 1_000)
        #expect(Minute.trace(seed: 1) == first)
        #expect(Minute.trace(seed: 2) != first)
    }

    @Test("the trace is the same in other processes, on a busy machine", arguments: ["Minute", "UnmodifiedWeek"])
    func processes(program: String) throws {
        let burners = try (0..<2).map { _ in
            try ChildProcess.spawn(.path("/bin/sh"), arguments: ["-c", "while :; do :; done"])
        }
        defer { for burner in burners { _ = try? burner.kill(.kill) } }
        func output() throws -> String {
            var output = ""
            let child = try ChildProcess.spawn(
                .path(pathOfProgram(program)), arguments: ["3"], standardOutput: .pipe)
            let reading = Connection(reading: child.standardOutput, writing: nil, on: .current) { _, bytes in
                output += bytes.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
                return bytes.count
            }
            try reading.start()
            RunLoop.current.run()
            return output
        }
        let isMinute = program == "Minute"
        let first = isMinute ? Minute.trace(seed: 3).joined(separator: "\n") + "\n" : try output()
        let events =
            isMinute ? ["crashed", "exited with code 0"] : ["day 7: ", "client 3", "[] true 691200.000000000"]
        for event in events { #expect(first.contains(event)) }
        for _ in 0..<3 { #expect(try output() == first) }
    }
}
