import ExampleTestSupport
import Glibc
import RunLoopKit
import Testing

@testable import RunLoopUnix

/// Clients that connect, write a line, and read the answer, one after another without a pause.
private final class Clients: Sendable {
    let servers = Log<String>()
    let failures = Log<String>()
    private let isOver = Flag()
    private let threads: Log<PlainThread> = Log()

    init(_ address: Endpoint, count: Int) {
        for _ in 0..<count {
            let thread = PlainThread { [self] in
                // Signals of other tests must not interrupt the client.
                var all = sigset_t()
                sigfillset(&all)
                pthread_sigmask(SIG_SETMASK, &all, nil)
                while !isOver.isSet { if let failure = request(address) { failures(failure) } }
            }
            threads.append(thread)
        }
    }

    /// - Returns: the error, if any.
    private func request(_ address: Endpoint) -> String? {
        let descriptor = socket(address.systemFamily, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        defer { close(descriptor) }
        guard address.withSystemAddress({ connect(descriptor, $0, $1) }) == 0 else { return "connect: \(errno)" }
        usleep(.random(in: 0..<2000))
        guard send(descriptor, "hello\n", 6, Int32(MSG_NOSIGNAL)) == 6 else { return "send: \(errno)" }
        var answer = ""
        while true {
            // Longer than any restart.
            var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            guard poll(&waiting, 1, 60_000) == 1 else { return "no answer" }
            var bytes = [UInt8](repeating: 0, count: 100)
            let count = recv(descriptor, &bytes, bytes.count, 0)
            if count == 0 { break }
            guard count > 0 else { return "receive: \(errno)" }
            answer += String(decoding: bytes.prefix(count), as: UTF8.self)
        }
        guard answer.hasSuffix(": hello\n") else { return "answer: \(answer)" }
        servers(String(answer.prefix { $0 != ":" }))
        return nil
    }

    func end() {
        isOver.set()
        for thread in threads.entries { thread.join() }
    }
}

@Suite("Rolling restarts", .timeLimit(.minutes(5)))
struct RollingRestartTests {
    /// Starts a server on a listening socket, as a service manager does, and waits until it is ready.
    private static nonisolated(nonsending) func start(
        on socket: Int32, _ loop: RunLoop
    ) async throws -> ChildProcess {
        let server = try ChildProcess.spawn(
            .path("/bin/sh"),
            arguments: [
                "-c", "LISTEN_PID=$$ LISTEN_FDS=1 exec \"$0\" serve 3<&0 0</dev/null", pathOfProgram("RollingEcho"),
            ], standardInput: .descriptor(socket), standardOutput: .pipe)
        let output = Connection(reading: server.standardOutput, writing: nil, on: loop)
        for try await line in output.lines() {
            #expect(line.hasPrefix("serving "))
            break
        }
        output.close()
        return server
    }

    @Test(
        "two restarts refuse and reset no connection, whether the next server is ready before the former ends or not",
        arguments: [false, true], [false, true])
    func restarts(isUnix: Bool, overlaps: Bool) async throws {
        try await withLoop { loop in
            let address =
                try isUnix
                ? Endpoint(path: "@rlk-rolling-\(getpid())-\(overlaps)") : Endpoint("127.0.0.1", port: 0)
            let socket = socket(address.systemFamily, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
            defer { close(socket) }
            #expect(address.withSystemAddress { bind(socket, $0, $1) } == 0 && listen(socket, 511) == 0)
            var server = try await Self.start(on: socket, loop)
            let clients = Clients(RealSystem.shared.localAddress(of: socket), count: 4)
            for _ in 1...2 {
                try await loop.clock.sleep(for: .milliseconds(100))
                if overlaps {
                    let next = try await Self.start(on: socket, loop)
                    try server.kill(.terminate)
                    #expect(try await server.exit() == .exited(0))
                    server = next
                } else {
                    try server.kill(.terminate)
                    #expect(try await server.exit() == .exited(0))
                    server = try await Self.start(on: socket, loop)
                }
            }
            try await loop.clock.sleep(for: .milliseconds(100))
            clients.end()
            try server.kill(.terminate)
            #expect(try await server.exit() == .exited(0))
            #expect(clients.failures.entries == [])
            #expect(Set(clients.servers.entries).count == 3, "every server has answered")
        }
    }

    private static let activator = "/usr/bin/systemd-socket-activate"

    @Test(
        "a server that systemd activates answers the client that has activated it",
        .enabled(if: access(activator, X_OK) == 0))
    func activated() async throws {
        try await withLoop { loop in
            let directory = TemporaryDirectory()
            let server = try ChildProcess.spawn(
                .path(Self.activator), arguments: ["-l", directory["socket"], pathOfProgram("RollingEcho"), "serve"],
                standardOutput: .pipe, standardError: .null)
            let address = try Endpoint(path: directory["socket"])
            // The path exists a moment before the server listens.
            #expect(eventually { Self.isListening(address) })
            let clients = Clients(address, count: 1)
            #expect(eventually { clients.servers.entries.count > 1 })
            clients.end()
            try server.kill(.terminate)
            #expect(try await server.exit() == .exited(0))
            #expect(clients.failures.entries == [])
            #expect(Set(clients.servers.entries) == ["\(server.processIdentifier)"])
        }
    }

    private static func isListening(_ address: Endpoint) -> Bool {
        let descriptor = socket(address.systemFamily, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        defer { close(descriptor) }
        return address.withSystemAddress { connect(descriptor, $0, $1) } == 0
    }

    @Test("the example replaces its server twice, and every request is answered")
    func example() async throws {
        try await withLoop { loop in
            let manager = try ChildProcess.spawn(.path(pathOfProgram("RollingEcho")), standardOutput: .pipe)
            let output = Connection(reading: manager.standardOutput, writing: nil, on: loop)
            var last = ""
            for try await line in output.lines() { last = line }
            #expect(last == "requests were answered by 3 servers; 0 failed")
            #expect(try await manager.exit() == .exited(0))
        }
    }
}

extension Endpoint {
    fileprivate var systemFamily: Int32 { withSystemAddress { address, _ in Int32(address.pointee.sa_family) } }
}
