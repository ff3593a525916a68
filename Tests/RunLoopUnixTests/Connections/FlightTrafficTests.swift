import RunLoopCore
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
}
