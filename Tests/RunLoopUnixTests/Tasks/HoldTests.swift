import Glibc
import RunLoopKit
import RunLoopSimulation
@_spi(Ports) import RunLoopUnix
import TestSupport
import Testing

@Suite("Virtual time beside real I/O", .timeLimit(.minutes(5)))
struct HoldTests {
    /// Returns the address of a test's peer, in the test's own process or in a process that the test has started.
    private static func address(_ name: String, of process: Int32) -> Endpoint {
        try! Endpoint(path: "@runloopkit-\(name)-\(process)")
    }

    /// Starts a peer on a thread, in real time.
    private static func peer(_ name: String, _ serve: @escaping @Sendable (Int32) -> Void) -> PlainThread {
        let socket = socket(AF_UNIX, SocketKind.stream, 0)
        #expect(WorldSystem.real.bind(socket, to: address(name, of: getpid())) == 0)
        listen(socket, 1)
        return PlainThread {
            let connection = accept(socket, nil, nil)
            serve(connection)
            close(connection)
            close(socket)
        }
    }

    /// Runs a task in a simulation whose loop has a timeout of a second of virtual time for each request.
    ///
    /// - Returns: the number of requests that were not answered in time.
    private static func timeouts(
        _ name: String, of process: Int32, requests: Int = 100, _ look: (Simulation) -> Void = { _ in }
    ) -> Int {
        withSimulation { simulation in
            let loop = simulation.loop
            var timeouts = 0
            loop.task {
                let connection = try await Connection.connect(to: address(name, of: process), on: loop)
                for _ in 0..<requests {
                    let timeout = loop.perform(afterDelay: .seconds(1)) { timeouts += 1 }
                    try await connection.write("?")
                    _ = try await connection.read()
                    timeout.cancel()
                }
                connection.close()
            }
            simulation.runUntilIdle()
            look(simulation)
            return timeouts
        }
    }

    /// Answers each byte after 3 ms, every tenth after 12.
    @Sendable private static func answer(_ connection: Int32) {
        var byte: UInt8 = 0
        var number: UInt32 = 0
        while read(connection, &byte, 1) == 1 {
            number += 1
            usleep(number % 10 == 0 ? 12_000 : 3_000)
            _ = send(connection, &byte, 1, Int32(MSG_NOSIGNAL))
        }
    }

    @Test("answers of another process that a task awaits come before a timeout of virtual time")
    func answers() async {
        let peer = Self.peer("answers", Self.answer)
        await #expect(processExitsWith: .success) {
            let count = HoldTests.timeouts("answers", of: getppid()) { simulation in
                #expect(simulation.now.nanoseconds == 0 && simulation.escapes.isEmpty && !simulation.isReproducible)
            }
            #expect(count == 0)
        }
        peer.join()
    }

    @Test("a peer of the same process is taken for a part of the simulation")
    func inside() {
        let peer = Self.peer("inside", Self.answer)
        let count = Self.timeouts("inside", of: getpid(), requests: 1) { #expect($0.isReproducible) }
        #expect(count == 1)
        peer.join()
    }

    @Test("what another process does not read at once is written before a timeout of virtual time")
    func output() async {
        let peer = Self.peer("output") { connection in
            usleep(20_000)
            var bytes = [UInt8](repeating: 0, count: 1 << 16)
            while read(connection, &bytes, bytes.count) > 0 {}
        }
        await #expect(processExitsWith: .success) {
            func send() {
                withSimulation { simulation in
                    let loop = simulation.loop
                    var log: [String] = []
                    loop.task {
                        let address = HoldTests.address("output", of: getppid())
                        let connection = try await Connection.connect(to: address, on: loop)
                        loop.perform(afterDelay: .seconds(1)) { log.append("timeout") }
                        try await connection.withStream { try await $0.write([UInt8](repeating: 1, count: 1 << 23)) }
                        log.append("written")
                    }
                    simulation.runUntilIdle()
                    #expect(log == ["written", "timeout"])
                    #expect(simulation.escapes.isEmpty && !simulation.isReproducible)
                }
            }
            send()
        }
        peer.join()
    }

    @Test("a server does not wait in real time for the next request")
    func server() {
        withSimulation { simulation in
            let loop = simulation.loop
            let (own, other) = makeSockets()
            defer { close(other) }
            let connection = Connection(adopting: own, on: loop)
            loop.task {
                try await connection.write("hello")
                _ = try await connection.read()
            }
            simulation.advance(by: .seconds(10))
            #expect(simulation.isReproducible)
        }
    }

    @Test("a child that runs keeps the time until its end is known")
    func child() throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            var log: [String] = []
            loop.perform(afterDelay: .seconds(1)) { log.append("timeout") }
            let child = try ChildProcess.spawn(
                .path("/bin/sh"), arguments: ["-c", "sleep 0.02; echo out; exit 3"], standardOutput: .pipe)
            let output = Connection(reading: child.standardOutput, writing: nil, on: loop)
            loop.task {
                log.append(String(decoding: try await output.read() ?? [], as: UTF8.self))
                log.append("\(try await child.exit())")
            }
            simulation.runUntilIdle()
            #expect(log == ["out\n", "exited with code 3", "timeout"])
            #expect(simulation.escapes.isEmpty && !simulation.isReproducible)
        }
    }

    @Test("a dropped child does not hold the time")
    func droppedChild() throws {
        try withSimulation { simulation in
            _ = try ChildProcess.spawn(.path("/bin/sleep"), arguments: ["0.2"])
            simulation.advance(by: .seconds(10))
            #expect(simulation.escapes.isEmpty)
        }
    }

    @Test("a name that the system looks up keeps the time until there is an answer")
    func name() {
        withSimulation { simulation in
            let loop = simulation.loop
            var log: [String] = []
            loop.perform(afterDelay: .seconds(1)) { log.append("timeout") }
            HostResolver.resolve("localhost", port: 7, on: loop) { result in
                log.append((try? result.get()) == nil ? "no answer" : "addresses")
            }
            simulation.runUntilIdle()
            #expect(log == ["addresses", "timeout"])
            #expect(simulation.escapes.isEmpty && !simulation.isReproducible)
        }
    }
}
