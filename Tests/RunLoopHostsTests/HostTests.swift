import Glibc
import RunLoopCore
import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopUnix
import TestSupport
import Testing

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
            #expect(host.isRunning && host.addresses == ["10.0.0.2", "fd00::2"])
            simulation.advance(by: .seconds(1))
            #expect(host.isRunning && log.withLock { $0.count } == 1)
            simulation.advance(by: .seconds(10))
            #expect(!host.isRunning && host.remote == nil && host.failure == nil)
            host.start()
            simulation.advance(by: .seconds(10))
            #expect(log.withLock(\.self) == ["begin true 0.0 seconds", "end", "begin true 11.0 seconds", "end"])
        }
    }

    @Test("an error of the program ends its process, and is told")
    func failures() {
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            let host = network.addHost("worker") { loop in
                loop.perform(afterDelay: .seconds(5)) {}
                throw SystemError("begin", errno: EPERM)
            }
            simulation.advance(by: .seconds(1))
            #expect(!host.isRunning && host.failure as? SystemError == SystemError("begin", errno: EPERM))
        }
    }

    @Test("a process that ends closes its connections; its threads end")
    func ends() {
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            let log = Locked<[String]>([])
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
            #expect(again.connection?.isOpen == true && log.withLock(\.isEmpty))
        }
    }

    @Test("a host that crashes runs nothing more, tells nobody, and starts again with nothing")
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
            // A server that waits for its helper serves nobody: in its own thread it does.
            server.crash()
            #expect(!server.isRunning)
            simulation.advance(by: .seconds(10))
            #expect(log.withLock(\.self) == ["tick", "tick", "tick"])
            server.start()
            simulation.advance(by: .milliseconds(1_500))
            #expect(log.withLock { $0.count } == 4)
        }
    }

    @Test("the peer of a host that crashed learns of it when it writes: never while it is down, and then by a reset")
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

    @Test("what runs on one host is not seen on another: names of timers, values of a world, chance")
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

    // MARK: Repeatable

    /// A minute of five clients on bad links, with a crash and a partition.
    private static func minute(seed: UInt64) -> [String] {
        withSimulation(seed: seed, traced: true) { simulation in
            let network = SimulatedNetwork(simulation)
            network.link.latency = .milliseconds(50)
            network.link.jitter = .milliseconds(10)
            network.link.lossRate = 0.02
            let server = network.addHost("server", program: echo)
            for number in 1...5 {
                network.addHost("client \(number)") { loop in
                    @Sendable func begin(_ loop: RunLoop) {
                        var retry = Connection.Retry()
                        retry.maximumTries = nil
                        Connection.connect(host: "server", port: 7, on: loop, timeout: .seconds(5), retry: retry) {
                            connection, bytes in
                            connection.write(bytes)
                            return bytes.count
                        } completion: { result in
                            guard let connection = try? result.get() else { return }
                            connection.closeHandler = { _, _ in begin(loop) }
                            try? connection.start()
                            var random = loop.randomNumbers
                            connection.write([UInt8](repeating: 1, count: .random(in: 1...30, using: &random)))
                        }
                    }
                    begin(loop)
                }
            }
            simulation.advance(by: .seconds(10))
            server.crash()
            simulation.advance(by: .seconds(10))
            server.start()
            simulation.advance(by: .seconds(10))
            network.partition([server])
            simulation.advance(by: .seconds(10))
            network.heal()
            simulation.advance(by: .seconds(20))
            #expect(simulation.escapes.isEmpty)
            return simulation.trace
        }
    }

    @Test("the same seed gives the same trace, another one another")
    func seeds() {
        let first = Self.minute(seed: 1)
        #expect(first.count > 1_000)
        #expect(Self.minute(seed: 1) == first)
        #expect(Self.minute(seed: 2) != first)
    }

    @Test("the trace is the same in another process")
    func processes() async throws {
        func run() async throws -> String {
            let result = try await #require(
                processExitsWith: .success, observing: [\.standardOutputContent]
            ) {
                for line in HostTests.minute(seed: 3) { print(line) }
            }
            return String(decoding: result.standardOutputContent, as: UTF8.self)
        }
        let first = try await run()
        #expect(try await run() == first && first.contains("crashed"))
    }
}
