#if Adapters
import Glibc
import RunLoopHTTP
import RunLoopKit
import RunLoopTLS
import RunLoopUnix
import TLSTestSupport
import TestSupport
import Testing

@Suite("An HTTP server on sockets, with TLS, groups and Unix sockets")
struct TLSTests {
    /// Returns the first bytes of an answer on `address`.
    private func answer(on address: Endpoint, tls: TLSClientContext? = nil) throws -> (text: String, version: String?) {
        let loop = RunLoop.current
        return try loop.run {
            let peer =
                if let tls {
                    try await Connection.connect(to: address, on: loop, tls: tls, serverName: "localhost")
                } else { try await Connection.connect(to: address, on: loop) }
            try await peer.write("GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            var text = ""
            while let bytes = try await peer.read() { text += String(decoding: bytes, as: UTF8.self) }
            return (text, peer.tls?.applicationProtocol)
        }
    }

    @Test("a server speaks TLS, and agrees on the version of HTTP")
    func tls() throws {
        let authority = Authority()
        let loop = RunLoop.current
        let server = HTTPServer(on: loop) { request in .text(request.tls == nil ? "plain" : "secure") }
        try server.setTLS(authority.identity())
        let address = try server.listen(on: Endpoint("127.0.0.1", port: 0))
        for (protocols, agreed) in [(["http/1.1"], "http/1.1"), ([], nil)] as [([String], String?)] {
            var options = TLSOptions()
            options.applicationProtocols = protocols
            let context = try TLSClientContext(roots: authority.roots, options: options)
            let (text, version) = try answer(on: address, tls: context)
            #expect(text.hasPrefix("HTTP/1.1 200 OK\r\n") && text.hasSuffix("secure") && version == agreed)
        }
        server.close()
        #expect(loop.run(in: .default, until: loop.now + .seconds(5)) == .finished)
    }

    @Test("a server on a group serves on each of its loops, and ends with its daemon's stages")
    func group() throws {
        let group = try LoopGroup(count: 2)
        let threads = Log<String>()
        let server = HTTPServer(on: group) { request in
            threads.append("\(ObjectIdentifier(request.loop))")
            return .text("hello")
        }
        let address = try server.listen(on: Endpoint("127.0.0.1", port: 0))
        for _ in 0..<40 { #expect(try answer(on: address).text.hasSuffix("hello")) }
        #expect(Set(threads.entries).count == 2 && threads.entries.count == 40)
        let isEmpty = Flag()
        server.shutDown { isEmpty.set() }
        #expect(RunLoop.current.run(in: .default, until: RunLoop.current.now + .seconds(5)) == .finished)
        #expect(isEmpty.isSet && server.connectionCount == 0)
        group.stop()
        group.join()
    }

    @Test("a server listens on the path of a Unix socket, which it takes away at its end")
    func path() throws {
        let directory = TemporaryDirectory()
        let address = try Endpoint(path: directory["web.sock"])
        let server = HTTPServer(on: .current) { _ in .text("hello") }
        try server.listen(on: address)
        #expect(try answer(on: address).text.hasSuffix("hello"))
        server.close()
        RunLoop.current.run(in: .default, until: RunLoop.current.now + .seconds(5))
        #expect(access(directory["web.sock"], F_OK) != 0)
    }
}
#endif
