import Glibc
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@testable import RunLoopUnix

@Suite("Listeners")
struct ListenerTests {
    /// Accepts a few peers on an address, and says what each of them is sent back.
    private func greet(_ address: Endpoint, _ simulation: Simulation) throws -> String? {
        let loop = simulation.loop
        let listener = try Listener(address: address, on: loop) { _, descriptor, _ in
            let connection = Connection(adopting: descriptor, on: loop) { $1.count }
            try? connection.start()
            connection.write("welcome")
            connection.finish()
        }
        defer { listener.close() }
        let peer = Peer(connectedTo: listener.address)
        var answer: String? = ""
        simulation.settle {
            answer = peer.receive()
            return answer != ""
        }
        return answer
    }

    @Test("connections are accepted on IPv4, IPv6, a path, and an abstract name")
    func families() throws {
        try withSimulation { simulation in
            let path = "/tmp/rlk-listener-\(getpid())"
            let greetings = [
                try greet(Endpoint("127.0.0.1", port: 0), simulation),
                try greet(Endpoint("::1", port: 0), simulation),
                try greet(Endpoint(path: path), simulation),
                try greet(Endpoint(path: "@rlk-\(getpid())"), simulation),
            ]
            #expect(greetings == ["welcome", "welcome", "welcome", "welcome"])
            #expect(access(path, F_OK) != 0, "the path is removed at the end")
        }
    }

    @Test("a port in use is an error that says so")
    func inUse() throws {
        try withSimulation { simulation in
            let first = try Listener(address: Endpoint("127.0.0.1", port: 0), on: simulation.loop) {
                close($1); _ = $2
            }
            let error = #expect(throws: SystemError.self) {
                try Listener(address: first.address, on: simulation.loop) {
                    close($1); _ = $2
                }
            }
            #expect(error?.errno == EADDRINUSE)
            #expect(error?.operation == "bind to \(first.address)")
            first.close()
        }
    }

    @Test("a path that was left behind is taken over; one that somebody listens on is not")
    func stalePath() throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            let address = try Endpoint(path: "/tmp/rlk-stale-\(getpid())")
            let stale = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
            #expect(address.withSystemAddress { bind(stale, $0, $1) } == 0)
            close(stale)
            let listener = try Listener(address: address, on: loop) {
                close($1); _ = $2
            }
            let error = #expect(throws: SystemError.self) {
                try Listener(address: address, on: loop) {
                    close($1); _ = $2
                }
            }
            #expect(error?.errno == EADDRINUSE)
            listener.close()
        }
    }

    @Test("a descriptor that was handed over must listen")
    func inherited() throws {
        try withSimulation { simulation in
            let idle = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            defer { close(idle) }
            let error = #expect(throws: SystemError.self) {
                try Listener(inherited: idle, on: simulation.loop) {
                    close($1); _ = $2
                }
            }
            #expect(error?.errno == EINVAL)
            let listening = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            #expect(listen(listening, 1) == 0)
            var accepted = 0
            let listener = try Listener(inherited: listening, on: simulation.loop) {
                accepted += 1
                close($1)
                _ = $2
            }
            let peer = Peer(connectedTo: listener.address)
            simulation.settle { accepted > 0 }
            #expect(accepted == 1)
            listener.close()
            withExtendedLifetime(peer) {}
        }
    }

    @Test("without a descriptor left it refuses, reports, rests, and goes on")
    func noDescriptors() async {
        await #expect(processExitsWith: .exitCode(0)) { try runWithoutDescriptors() }
    }

    @Test("a pass accepts no more than its budget")
    func budget() throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            var options = Listener.Options()
            options.budget = 3
            var perPass: [Int: Int] = [:]
            let listener = try Listener(address: Endpoint("127.0.0.1", port: 0), on: loop, options: options) {
                perPass[loop.statistics.passes, default: 0] += 1
                close($1)
                _ = $2
            }
            let peers = (0..<10).map { _ in Peer(connectedTo: listener.address) }
            simulation.settle { perPass.values.reduce(0, +) == 10 }
            #expect(perPass.values.reduce(0, +) == 10)
            #expect(perPass.values.max() == 3)
            listener.close()
            withExtendedLifetime(peers) {}
        }
    }
}

/// Accepts with room for two descriptors; ends the process with 0 if all is as it should be.
private func runWithoutDescriptors() throws {
    try withSimulation { simulation in
        let loop = simulation.loop
        var kept: [Int32] = []
        let listener = try Listener(address: Endpoint("127.0.0.1", port: 0), on: loop) {
            _, descriptor, _ in
            kept.append(descriptor)
        }
        var errors: [Int32] = []
        listener.errorHandler = { errors.append($1.errno) }
        // Peers that have descriptors already.
        let peers = (0..<6).map { _ in Peer(connectedTo: listener.address) }
        // Every number below the limit is taken, but for two; other threads of the process may take them, too.
        var last: Int32 = 0
        while last < 200 { last = dup(0) }
        close(last)
        close(last - 1)
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        let usual = limit.rlim_cur
        limit.rlim_cur = rlim_t(last + 1)
        guard setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { _exit(2) }
        simulation.settle { !errors.isEmpty }
        guard errors.first == EMFILE, kept.count <= 2, listener.isOpen else { _exit(3) }
        let passes = loop.statistics.passes
        simulation.advance(by: .milliseconds(90))
        guard loop.statistics.passes - passes < 5 else { _exit(4) }
        limit.rlim_cur = usual
        guard setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { _exit(2) }
        simulation.advance(by: .milliseconds(20))
        simulation.settle { listener.accepted + listener.refused >= 6 }
        guard listener.accepted >= 3, listener.isOpen else { _exit(5) }
        _ = peers
        _exit(0)
    }
}

@Suite("Connecting")
struct ConnectingTests {
    @Test("a connection is made, and its handlers work")
    func success() throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            let listener = try Listener(address: Endpoint("127.0.0.1", port: 0), on: loop) { _, descriptor, _ in
                let connection = Connection(adopting: descriptor, on: loop) { connection, bytes in
                    connection.write(bytes)
                    return bytes.count
                }
                try? connection.start()
            }
            var echoed = ""
            Connection.connect(to: listener.address, on: loop) { connection, bytes in
                echoed += bytes.text
                connection.finish()
                return bytes.count
            } completion: { result in
                guard case .success(let connection) = result else { return }
                try? connection.start()
                connection.write("hello")
            }
            simulation.advance(by: .seconds(1))
            #expect(echoed == "hello")
            listener.close()
        }
    }

    @Test("a refusal is an error, told later and once")
    func refused() throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            let listener = try Listener(address: Endpoint("127.0.0.1", port: 0), on: loop) {
                close($1); _ = $2
            }
            let address = listener.address
            listener.close()
            var outcomes: [Int32] = []
            Connection.connect(to: address, on: loop) {
                $1.count
            } completion: { result in
                if case .failure(let error) = result { outcomes.append(error.errno) }
            }
            #expect(outcomes.isEmpty)
            simulation.advance(by: .seconds(60))
            #expect(outcomes == [ECONNREFUSED])
        }
    }

    @Test("an attempt that was cancelled tells nobody")
    func cancelled() throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            let listener = try Listener(address: Endpoint("127.0.0.1", port: 0), on: loop) {
                close($1); _ = $2
            }
            var outcomes = 0
            let attempt = Connection.connect(to: listener.address, on: loop) {
                $1.count
            } completion: { _ in
                outcomes += 1
            }
            attempt.cancel()
            simulation.advance(by: .seconds(60))
            #expect(outcomes == 0)
            #expect(!attempt.isPending)
            listener.close()
        }
    }

    @Test("a name is resolved off the loop, and an unknown one is an error")
    func resolver() {
        withSimulation { simulation in
            var found: [String] = []
            var failed: [String] = []
            for name in ["localhost", "127.0.0.1", "no such name.invalid"] {
                HostResolver.resolve(name, port: 80, on: simulation.loop) { result in
                    switch result {
                    case .success(let addresses): found += addresses.map(\.description)
                    case .failure(let failure): failed.append(failure.name)
                    }
                }
            }
            #expect(found.isEmpty && failed.isEmpty)
            simulation.runUntilIdle()
            #expect(found.contains("127.0.0.1:80"))
            #expect(failed == ["no such name.invalid"])
        }
    }
}

@Suite("Socket addresses")
struct EndpointTests {
    @Test("addresses print as they are written")
    func descriptions() throws {
        #expect(try Endpoint("127.0.0.1", port: 80).description == "127.0.0.1:80")
        #expect(try Endpoint("::1", port: 80).description == "[::1]:80")
        #expect(try Endpoint(path: "/run/x").description == "/run/x")
        #expect(try Endpoint(path: "@x").description == "@x")
        #expect(try Endpoint("::1", port: 8080).port == 8080)
        #expect(try Endpoint(path: "/run/x").port == nil)
    }

    @Test("what is no address is refused", arguments: ["localhost", "", "1.2.3", "1.2.3.4.5", ":::1"])
    func refused(text: String) {
        #expect(throws: SystemError.self) { try Endpoint(text, port: 1) }
    }

    @Test("a path must have 1 to 107 bytes")
    func paths() throws {
        #expect(throws: SystemError.self) { try Endpoint(path: "") }
        #expect(throws: SystemError.self) { try Endpoint(path: String(repeating: "x", count: 108)) }
        #expect(try Endpoint(path: String(repeating: "x", count: 107)).path?.count == 107)
    }
}
