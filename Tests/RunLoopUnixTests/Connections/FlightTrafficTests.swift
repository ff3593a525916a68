@_spi(Ports) import RunLoopCore
import RunLoopKit
import RunLoopUnix
import TestSupport
import Testing

@Suite("Bytes in flights", .timeLimit(.minutes(15)))
struct FlightTrafficTests {
    @Test("a flight has the bytes of each connection, by its name")
    func bytes() throws {
        let flight = onThread {
            let loop = RunLoop.current
            let recorder = try! FlightRecorder(loop)
            let pair = makeSockets()
            let server = Connection(adopting: pair.0, on: loop) { connection, bytes in
                connection.write(bytes)
                return bytes.count
            }
            server.name = "server"
            var received = 0
            let client = Connection(adopting: pair.1, on: loop) { connection, bytes in
                received += bytes.count
                if received == 100_000 { connection.finish() }
                return bytes.count
            }
            for connection in [server, client] { try! connection.start() }
            client.name = "client"
            client.write([UInt8](repeating: 1, count: 100_000))
            loop.run()
            return try! recorder.memory.flight()
        }
        let traffic = flight.traffic.map { "\($0.connection?.name ?? "") \($0.received) \($0.sent)" }.sorted()
        #expect(traffic == ["client 100000 100000", "server 100000 100000"])
        #expect("\(flight)".contains("  100000 received, 100000 sent: descriptor \"server\""), "\(flight)")
        #expect(Flight.traceEvents(of: [flight]).contains(#""received":100000,"sent":100000"#))
        #expect(flight.unfinished.isEmpty)
    }

    @Test("a watcher is told the bytes of each connection, with and without a recorder", arguments: [false, true])
    func watched(records: Bool) throws {
        let bytes = onThread {
            let loop = RunLoop.current
            let recorder = records ? try! FlightRecorder(loop) : nil
            let watcher = ByteWatcher()
            loop.addWatcher(watcher)
            let pair = makeSockets()
            let server = Connection(adopting: pair.0, on: loop) { connection, bytes in
                connection.write(bytes)
                return bytes.count
            }
            let client = Connection(adopting: pair.1, on: loop) { connection, bytes in
                connection.finish()
                return bytes.count
            }
            for connection in [server, client] { try! connection.start() }
            client.name = "client"
            client.write([1, 2, 3])
            loop.run()
            return withExtendedLifetime(recorder) { watcher.bytes }
        }
        #expect(bytes == ["client": [3, 3], "connection": [3, 3]])
    }
}

private final class ByteWatcher: LoopWatcher {
    /// The received and the sent bytes of each connection.
    var bytes: [String: [Int]] = [:]
    let events = RunLoop.WatchedEvent.Groups.bytes

    func watch(_ event: RunLoop.WatchedEvent) {
        guard case .moved(let received, let sent, _, let callee) = event else { return }
        let before = bytes[callee.name ?? "", default: [0, 0]]
        bytes[callee.name ?? ""] = [before[0] + received, before[1] + sent]
    }
}
