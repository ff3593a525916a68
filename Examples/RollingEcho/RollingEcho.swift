// A server that is replaced while clients connect, without a failed request. `RollingEcho serve` answers a line on each
// connection to the socket inherited from its service manager, on all processors, until it is asked to stop. Without
// arguments this is the manager: it holds the socket, starts a server, replaces it twice, and sends requests meanwhile.

import Glibc
import RunLoopKit
import RunLoopUnix

@main
struct RollingEcho {
    static func main() throws {
        let loop = RunLoop.main
        let isServer = CommandLine.arguments.dropFirst().first == "serve"
        exit(try isServer ? serve(on: loop) : loop.run { try await manage(on: loop) })
    }

    // MARK: The server

    static func serve(on loop: RunLoop) throws -> Int32 {
        // First, before other threads exist.
        guard let socket = try ActivatedSocket.all().first else {
            print("there is no socket; for example: systemd-socket-activate -l 7000 RollingEcho serve")
            return 64
        }
        try socket.expect(.stream, listening: true)
        let daemon = Daemon(loop: loop, manager: try ServiceManager())
        try daemon.handleSignals()
        let group = try LoopGroup(name: "server")
        let server = try Server(on: group) { connection, _ in
            connection.receiveHandler = { connection, bytes in
                guard bytes[bytes.count - 1] == UInt8(ascii: "\n") else { return 0 }
                connection.write("\(getpid()): ")
                connection.write(bytes)
                connection.finish()
                return bytes.count
            }
        }
        let address = try server.listen(inherited: socket.fileDescriptor)
        // A client that has connected is answered, even if its request is still under way.
        daemon.add(server)
        daemon.onStop(.exit) {
            group.stop()
            group.join()
        }
        print("serving \(address)")
        fflush(nil)
        return daemon.run()
    }

    // MARK: The manager

    static nonisolated(nonsending) func manage(on loop: RunLoop) async throws -> Int32 {
        // A socket without an address receives a port from the kernel when it listens.
        let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard socket >= 0, listen(socket, 511) == 0 else { return 71 }
        var (server, port) = try await start(listening: socket, on: loop)
        let log = RequestLog()
        let clients = (1...4).map { _ in
            loop.task { while !log.isOver { await request(port: port, on: loop, log) } }
        }
        for _ in 1...2 {
            try await loop.clock.sleep(for: .milliseconds(200))
            // The next server is ready before the former one is asked to stop.
            let (next, _) = try await start(listening: socket, on: loop)
            try server.kill(.terminate)
            print("replaced server: \(try await server.exit())")
            server = next
        }
        try await loop.clock.sleep(for: .milliseconds(200))
        log.isOver = true
        for client in clients { try await client.value }
        try server.kill(.terminate)
        print("last server: \(try await server.exit())")
        print("requests were answered by \(log.servers.count) servers; \(log.failures.count) failed")
        return log.servers.count == 3 && log.failures.isEmpty ? 0 : 1
    }

    /// Starts a server and passes the socket as systemd does, as descriptor 3. Returns when the server is ready.
    static nonisolated(nonsending) func start(
        listening socket: Int32, on loop: RunLoop
    ) async throws -> (server: ChildProcess, port: UInt16) {
        let server = try ChildProcess.spawn(
            .path("/bin/sh"),
            arguments: [
                "-c", "LISTEN_PID=$$ LISTEN_FDS=1 exec \"$0\" serve 3<&0 0</dev/null", CommandLine.arguments[0],
            ], standardInput: .descriptor(socket), standardOutput: .pipe)
        let output = Connection(reading: server.standardOutput, writing: nil, on: loop)
        defer { output.close() }
        for try await line in output.lines() {
            return (server, UInt16(line.split(separator: ":").last ?? "")!)
        }
        throw SystemError("start the server", errno: ECHILD)
    }

    /// Requests an answer, over a connection of its own.
    static nonisolated(nonsending) func request(port: UInt16, on loop: RunLoop, _ log: RequestLog) async {
        do {
            let connection = try await Connection.connect(to: Endpoint("127.0.0.1", port: port), on: loop)
            try await connection.withStream { stream in
                try await stream.write("hello\n")
                for try await line in stream.lines() {
                    log.servers.insert(line)
                    return
                }
                throw Connection.ClosedError(reason: .ended)
            }
        } catch { log.failures.append(error) }
    }
}

/// The results of the manager's requests.
final class RequestLog {
    var servers: Set<String> = []
    var failures: [any Error] = []
    var isOver = false
}
