#if Adapters
import RunLoopHTTP
import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopTLS
import RunLoopUnix
import TLSTestSupport
import TestSupport
import Testing

@Suite("An HTTP/2 client with servers that misbehave, simulated")
struct BadStreamServerTests {
    /// Sends two requests, one after another, to servers of HTTP/2 that answer each connection's first bytes after the
    /// preface with their settings, and each request with the bytes given for it, or the last ones.
    ///
    /// Returns the outcomes with their times in seconds, the number of connections that the server has seen, and of those
    /// that the client has ten seconds later.
    private func outcome(_ answers: [[UInt8]], method: HTTPRequest.Method = .get) -> String {
        let authority = Authority()
        let identity = authority.identity(for: "DNS:web")
        let roots = authority.roots
        let log = Log<String>()
        let accepted = Log<Int>()
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            network.addHost("web") { loop in
                let served = Log<Int>()
                let server = Server(on: loop) { connection, _ in
                    accepted.append(1)
                    try await connection.write(FrameClient.bytes(FrameClient.settings, 0, 0, []))
                    let frames = FrameClient(connection, skipping: FrameClient.preface.utf8.count)
                    while let frame = try await frames.next() {
                        guard frame.type == FrameClient.headers else { continue }
                        let bytes = answers[min(served.entries.count, answers.count - 1)]
                        served.append(1)
                        // The number of the stream stands in for the mark.
                        try await connection.write(Self.addressed(bytes, to: frame.stream))
                    }
                }
                var options = TLSOptions()
                options.applicationProtocols = ["h2"]
                server.setTLS(try TLSServerContext(identity: identity, options: options))
                try server.listen(on: Endpoint("0.0.0.0", port: 443))
            }
            network.addHost("client") { loop in
                loop.task {
                    var options = HTTPClient.Options()
                    options.tls = try TLSClientContext(roots: roots)
                    let client = HTTPClient(on: loop, options: options)
                    for _ in 0..<2 {
                        do {
                            let answer = try await client.send(HTTPRequest(method, "https://web/"))
                            let text = String(buffer: try await answer.body.collect(upTo: 1_000))
                            log.append("\(answer.status.code) \(text)")
                        } catch let failure as HTTPClient.Failure {
                            log.append("\(failure)".split(separator: ":").first.map(String.init) ?? "")
                        } catch { log.append("other \(error)") }
                        log.append("\(loop.now.nanoseconds / 1_000_000_000)")
                    }
                    try await loop.clock.sleep(for: .seconds(10))
                    log.append("\(client.connectionCount)")
                }
            }
            simulation.advance(by: .seconds(600))
        }
        return (log.entries + ["\(accepted.entries.count)"]).joined(separator: ", ")
    }

    private static let mark: UInt32 = 0x7fff_fffd

    private static func addressed(_ bytes: [UInt8], to stream: UInt32) -> [UInt8] {
        func four(_ number: UInt32) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) } }
        var result = bytes
        for start in result.indices.dropLast(3) where Array(result[start..<start + 4]) == four(mark) {
            result.replaceSubrange(start..<start + 4, with: four(stream))
        }
        return result
    }

    private static func frame(
        _ type: UInt8, _ payload: [UInt8], flags: UInt8 = 0, on stream: UInt32 = mark
    ) -> [UInt8] {
        FrameClient.bytes(type, flags, stream, payload)
    }

    /// The status 200, of the static table.
    private static let ok = frame(FrameClient.headers, [0x88], flags: FrameClient.endHeaders)
    private static let good = ok + frame(FrameClient.data, Array("ok".utf8), flags: FrameClient.endStream)
    private static let closed = "the connection closed before the answer was complete"

    @Test("a server that answers has one connection")
    func answers() {
        #expect(outcome([Self.good]) == "200 ok, 0, 200 ok, 0, 1, 1")
    }

    @Test(
        "an error of the connection ends its request at once, and the next request has a new connection",
        arguments: [
            // No window may grow by nothing; no data, and no end, without a stream.
            frame(FrameClient.windowUpdate, [0, 0, 0, 0], on: 0), frame(FrameClient.data, [1], on: 0),
            frame(FrameClient.reset, [0, 0, 0, 1], on: 0),
            // A frame that is too large, fields that are none, settings that are none.
            [0xff, 0xff, 0xff] + frame(FrameClient.data, []).dropFirst(3),
            frame(FrameClient.headers, [0xff, 0xff, 0xff, 0xff, 0xff, 0xff], flags: FrameClient.endHeaders),
            frame(FrameClient.settings, [1], on: 0), Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8),
            // A stream that the client has not begun.
            frame(FrameClient.headers, [0x88], flags: FrameClient.endHeaders, on: 99),
        ] as [[UInt8]])
    func connectionErrors(bytes: [UInt8]) {
        let outcome = outcome([bytes, Self.good], method: .post)
        #expect(outcome == "\(Self.closed), 0, 200 ok, 0, 1, 2", "\(outcome)")
    }

    private static func goAway(_ last: UInt8, _ error: UInt8 = 0) -> [UInt8] {
        frame(FrameClient.goAway, [0, 0, 0, last, 0, 0, 0, error], on: 0)
    }
    private static func reset(_ error: UInt8) -> [UInt8] { frame(FrameClient.reset, [0, 0, 0, error]) }
    private static let refused = reset(7)

    @Test(
        "an error of one stream ends its request at once, and the connection goes on",
        arguments: [
            // Data before a head, a head without a status, a name that is none, and the server's word that it gives up.
            frame(FrameClient.data, [1], flags: FrameClient.endStream),
            frame(FrameClient.headers, [0, 1, 0x78, 1, 0x79], flags: FrameClient.endHeaders),
            frame(FrameClient.headers, [0x88, 0, 1, 0x58, 1, 0x79], flags: FrameClient.endHeaders), reset(2), reset(8),
        ] as [[UInt8]])
    func streamErrors(bytes: [UInt8]) {
        let outcome = outcome([bytes, Self.good], method: .post)
        #expect(outcome.hasSuffix(", 0, 200 ok, 0, 1, 1") && !outcome.contains("time"), "\(outcome)")
    }

    @Test("a request that the server has refused to begin with is sent again, whatever its method, but not for ever")
    func refusals() {
        #expect(outcome([Self.refused, Self.good], method: .post) == "200 ok, 0, 200 ok, 0, 1, 1")
        // The server goes, and takes streams until it has gone.
        #expect(outcome([Self.goAway(0), Self.good], method: .post) == "200 ok, 0, 200 ok, 0, 1, 2")
        #expect(outcome([Self.goAway(0, 1), Self.good], method: .post) == "200 ok, 0, 200 ok, 0, 1, 2")
        #expect(outcome([Self.goAway(1) + Self.good], method: .post) == "200 ok, 0, 200 ok, 0, 0, 2")
        for method in [.get, .post] as [HTTPRequest.Method] {
            #expect(outcome([Self.refused], method: method) == "\(Self.closed), 0, \(Self.closed), 0, 1, 1")
            let outcome = outcome([Self.good, Self.reset(8)], method: method)
            #expect(outcome == "200 ok, 0, \(Self.closed), 0, 1, 1", "\(outcome)")
        }
    }
}
#endif
