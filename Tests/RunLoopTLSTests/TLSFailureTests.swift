import Glibc
@_spi(Ports) import RunLoopKit
import RunLoopSimulation
import RunLoopTLS
@_spi(Ports) import RunLoopUnix
import TLSTestSupport
import TestSupport
import Testing

@Suite("TLS failures")
struct TLSFailureTests {
    /// Connects a client to a server and returns the reports of both.
    private func meet(
        _ server: TLSServerContext, _ client: TLSClientContext, host: String = "localhost"
    ) throws -> (server: TLSError?, client: TLSError?) {
        try withSimulation { simulation in
            let (one, other) = makeSockets()
            let serving = try Side.server(one, on: simulation.loop, server)
            let asking = try Side.client(other, on: simulation.loop, client, host: host)
            simulation.advance(by: .zero)
            serving.connection.close()
            asking.connection.close()
            return (serving.error, asking.error)
        }
    }

    // MARK: Certificates

    @Test("a key that is too short is an error of the configuration", arguments: [Int32(1024), 2048])
    func shortKey(bits: Int32) {
        let identity = Authority().identity(bits: bits)
        do throws(TLSError) {
            _ = try TLSServerContext(identity: identity)
            #expect(bits == 2048)
        } catch {
            #expect(bits == 1024 && error.kind == .configuration && error.reason.hasSuffix("ee key too small"))
        }
    }

    @Test(
        "a time for the handshake that makes no sense is an error of the configuration",
        arguments: [
            Duration.zero, .seconds(-1), .seconds(86_401), .seconds(Int64.max), Duration(attoseconds: .max),
            Duration(attoseconds: .min),
        ])
    func absurdTimeout(timeout: Duration) {
        let authority = Authority()
        var options = TLSOptions()
        options.handshakeTimeout = timeout
        for make in [
            { _ = try TLSServerContext(identity: authority.identity(), options: options) },
            { _ = try TLSClientContext(roots: authority.roots, options: options) },
        ] {
            let error = #expect(throws: TLSError.self) { try make() }
            #expect(error?.kind == .configuration)
        }
    }

    @Test("a certificate for another host, of an unknown issuer, or out of its time is refused, and both sides know")
    func certificates() throws {
        let authority = Authority()
        let client = try TLSClientContext(roots: authority.roots)
        func server(_ identity: TLSIdentity) throws -> TLSServerContext { try TLSServerContext(identity: identity) }
        let cases: [(TLSIdentity, String, TLSError.Kind)] = [
            (authority.identity(), "example.org", .wrongHost),
            (authority.identity(), "127.0.0.1", .wrongHost),
            (authority.identity(for: "DNS:*.example.org"), "a.b.example.org", .wrongHost),
            (authority.identity(for: "IP:127.0.0.1"), "127.0.0.2", .wrongHost),
            (Authority().identity(), "localhost", .unknownIssuer),
            (authority.identity(from: -7200, until: -3600), "localhost", .certificateExpired),
            (authority.identity(from: 3600, until: 7200), "localhost", .certificateNotYetValid),
        ]
        for (identity, host, kind) in cases {
            let outcome = try meet(server(identity), client, host: host)
            #expect(outcome.client?.kind == kind, "for \(host)")
            #expect(outcome.server?.kind == .refusedByPeer, "for \(host)")
        }
    }

    @Test("names, wildcards and addresses that the certificate lists are good")
    func goodNames() throws {
        let authority = Authority()
        let client = try TLSClientContext(roots: authority.roots)
        for (names, host) in [
            ("DNS:localhost", "localhost"), ("DNS:*.example.org", "a.example.org"), ("IP:127.0.0.1", "127.0.0.1"),
            ("IP:::1", "::1"),
        ] {
            let server = try TLSServerContext(identity: authority.identity(for: names))
            let outcome = try meet(server, client, host: host)
            #expect(outcome.client == nil && outcome.server == nil, "for \(host)")
        }
    }

    @Test("a client verifies only the issuer, or nothing, if its context is set so")
    func verification() throws {
        let authority = Authority()
        let server = try TLSServerContext(identity: authority.identity())
        let issuer = try TLSClientContext(roots: authority.roots, verification: .issuerOnly)
        #expect(try meet(server, issuer, host: "example.org").client == nil)
        let stranger = try TLSServerContext(identity: Authority().identity(until: -1))
        #expect(try meet(stranger, issuer, host: "example.org").client?.kind == .unknownIssuer)
        #expect(try meet(stranger, TLSClientContext(verification: .none), host: "example.org").client == nil)
        #expect(try meet(server, TLSClientContext()).client?.kind == .unknownIssuer, "the system's roots are others")
    }

    @Test("a server that asks its clients to identify themselves receives their identity, or refuses")
    func clients() throws {
        let authority = Authority()
        let demanding = try TLSServerContext(identity: authority.identity(), clients: .mustIdentify(authority.roots))
        let asking = try TLSServerContext(identity: authority.identity(), clients: .mayIdentify(authority.roots))
        let nobody = try TLSClientContext(roots: authority.roots)
        let alice = try TLSClientContext(roots: authority.roots, identity: authority.identity(subject: "alice"))
        let stranger = try TLSClientContext(roots: authority.roots, identity: Authority().identity())
        let refused = try meet(demanding, nobody)
        #expect(refused.server?.kind == .certificateMissing)
        #expect(refused.client?.kind == .refusedByPeer)
        #expect(try meet(demanding, stranger).server?.kind == .unknownIssuer)
        #expect(try meet(asking, nobody).server == nil)
        try withSimulation { simulation in
            let (one, other) = makeSockets()
            let server = try Side.server(one, on: simulation.loop, demanding)
            let client = try Side.client(other, on: simulation.loop, alice)
            simulation.advance(by: .zero)
            #expect(server.connection.tls?.peerSubject == "CN=alice")
            server.connection.close()
            client.connection.close()
        }
    }

    @Test("without a common application protocol or version the handshake fails")
    func nothingInCommon() throws {
        let authority = Authority()
        var options = TLSOptions()
        options.applicationProtocols = ["h2"]
        let server = try TLSServerContext(identity: authority.identity(), options: options)
        options.applicationProtocols = ["smtp"]
        let outcome = try meet(server, TLSClientContext(roots: authority.roots, options: options))
        #expect(outcome.server?.kind == .nothingInCommon)
        #expect(outcome.client?.kind == .nothingInCommon)
        #expect(outcome.server?.reason == "no application protocol")
        #expect(try meet(server, TLSClientContext(roots: authority.roots)).client == nil, "it need not be brought up")
    }

    // MARK: No TLS

    @Test("a plain request on a TLS port, and a plain greeting to a TLS client, are distinguished from broken TLS")
    func plainPeers() throws {
        try withSimulation { simulation in
            let contexts = try Contexts()
            for text in ["GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "EHLO localhost\r\n"] {
                let (one, other) = makeSockets()
                let server = try Side.server(one, on: simulation.loop, contexts.server)
                send(other, text, text.utf8.count, 0)
                simulation.advance(by: .zero)
                #expect(server.error?.kind == .notTLS)
                #expect(!server.isSecured)
                if text.hasPrefix("GET") { #expect(server.error?.reason == "http request") }
                close(other)
            }
            let (one, other) = makeSockets()
            let client = try Side.client(one, on: simulation.loop, contexts.client)
            send(other, "220 ready\r\n", 11, 0)
            simulation.advance(by: .zero)
            #expect(client.error?.kind == .notTLS)
            close(other)
        }
    }

    @Test("a peer that never shakes hands is closed after the timeout, also one that only listens")
    func handshakeTimeout() throws {
        try withSimulation { simulation in
            var options = TLSOptions()
            options.handshakeTimeout = .seconds(7)
            let contexts = try Contexts(options)
            let (one, silent) = makeSockets()
            let (two, other) = makeSockets()
            let server = try Side.server(one, on: simulation.loop, contexts.server)
            let client = try Side.client(two, on: simulation.loop, contexts.client)
            simulation.advance(by: .milliseconds(6_999))
            #expect(server.reason == nil && client.reason == nil)
            simulation.advance(by: .milliseconds(1))
            #expect(server.error?.kind == .handshakeTimeout)
            #expect(client.error?.kind == .handshakeTimeout)
            close(silent)
            close(other)
        }
    }

    @Test("a connection that was secured in time is not closed by the handshake's timer")
    func inTime() throws {
        try withSimulation { simulation in
            let (server, client) = try Contexts().connect(on: simulation.loop)
            simulation.advance(by: .seconds(3600))
            #expect(server.reason == nil && client.reason == nil)
            server.connection.close()
            client.connection.close()
        }
    }

    @Test("a peer that goes during the handshake is a stream cut off")
    func goneEarly() throws {
        try withSimulation { simulation in
            let (one, other) = makeSockets()
            let server = try Side.server(one, on: simulation.loop, Contexts().server)
            close(other)
            // A process that is being started elsewhere may have the descriptor for a moment.
            simulation.settle { server.reason != nil }
            #expect(server.error?.kind == .truncated)
        }
    }

    @Test("bytes that were changed on the way are noticed")
    func tampering() throws {
        try withSimulation { simulation in
            let (server, client) = try Contexts().connect(on: simulation.loop)
            simulation.advance(by: .zero)
            // An unencrypted record of application data.
            let forged: [UInt8] = [23, 3, 3, 0, 32] + [UInt8](repeating: 7, count: 32)
            send(client.connection.fileDescriptor, forged, forged.count, 0)
            simulation.advance(by: .zero)
            #expect(server.error?.kind == .protocolViolation)
            #expect(server.received.isEmpty)
            #expect(client.error?.kind == .refusedByPeer)
        }
    }

    // MARK: Settings

    @Test("a certificate or key that cannot be used is an error that says which and why")
    func settings() throws {
        let authority = Authority()
        let (one, other) = (authority.identity(), authority.identity())
        let text = PEM.bytes(Array("hello".utf8))
        let tooMuch = [UInt8](repeating: 10, count: (16 << 20) + 1)
        let directory = TemporaryDirectory()
        directory.write(String(decoding: tooMuch, as: UTF8.self), to: "large.pem")
        let (large, fifo) = (directory["large.pem"], directory["fifo.pem"])
        try #require(mkfifo(fifo, 0o600) == 0)
        let cases: [(TLSIdentity, String)] = [
            (TLSIdentity(chain: .file("/nonexistent/chain.pem"), key: one.key), "open /nonexistent/chain.pem: No such"),
            (TLSIdentity(chain: text, key: one.key), "the PEM text given: no certificate"),
            (TLSIdentity(chain: one.chain, key: text), "the PEM text given: no private key"),
            (TLSIdentity(chain: one.chain, key: one.chain), "the PEM text given: no private key"),
            (TLSIdentity(chain: .bytes(tooMuch), key: one.key), "the PEM text given: more than 16 MiB"),
            (TLSIdentity(chain: .file(large), key: one.key), "\(large): more than 16 MiB"),
            (TLSIdentity(chain: .file("/dev/zero"), key: one.key), "/dev/zero is not a regular file"),
            // No wait for the other end of the FIFO.
            (TLSIdentity(chain: .file(fifo), key: one.key), "\(fifo) is not a regular file"),
            (TLSIdentity(chain: one.chain, key: other.key), "use the key: key values mismatch"),
        ]
        for (identity, reason) in cases {
            let error = #expect(throws: TLSError.self) { try TLSServerContext(identity: identity) }
            #expect(error?.kind == .configuration)
            #expect(error?.reason.hasPrefix(reason) == true, "\(error?.reason ?? "")")
        }
        #expect(throws: TLSError.self) { try TLSClientContext(roots: .certificates(text)) }
        var options = TLSOptions()
        options.applicationProtocols = [""]
        #expect(throws: TLSError.self) { try TLSClientContext(options: options) }
    }

    @Test("a name that no server can have is an error at once, and its descriptor is closed")
    func impossibleNames() throws {
        try withSimulation { simulation in
            let contexts = try Contexts()
            for name in ["", String(repeating: "a", count: 300), "localhost\0.example.org"] {
                let (one, other) = makeSockets()
                #expect(throws: TLSError.self, "\(name)") {
                    try Connection(adopting: one, on: simulation.loop, tls: contexts.client, serverName: name) {
                        $1.count
                    }
                }
                var byte: UInt8 = 0
                #expect(recv(other, &byte, 1, 0) == 0, "its peer sees the end")
                close(other)
                #expect(throws: TLSError.self, "\(name)") {
                    try Connection.connect(
                        to: Endpoint("127.0.0.1", port: 1), on: simulation.loop, tls: contexts.client, serverName: name,
                        receive: { $1.count }, completion: { _ in })
                }
                #expect(throws: TLSError.self, "\(name)") {
                    try Connection.connect(
                        host: name, port: 1, on: simulation.loop, tls: contexts.client, receive: { $1.count },
                        completion: { _ in })
                }
            }
            #expect(throws: TLSError.self) {
                try TLSServerContext(identity: TLSIdentity(chain: .file("/dev/null\0"), key: .bytes([])))
            }
        }
    }

    @Test(
        "the certificate must be for the host that is connected to, unless another name is given",
        arguments: [("localhost", nil, true), ("other.test", nil, false), ("other.test", "localhost", true)])
    func hosts(host: String, serverName: String?, isTrusted: Bool) throws {
        try withSimulation { simulation in
            let (loop, contexts) = (simulation.loop, try Contexts())
            HostResolver.finder.set({ _ in .success([try! Endpoint("127.0.0.1", port: 0)]) }, in: loop.world)
            let server = Side()
            let listener = try Listener(address: Endpoint("127.0.0.1", port: 0), on: loop) { _, descriptor, _ in
                server.connection = try? Connection(adopting: descriptor, on: loop, tls: contexts.server) {
                    server.take($1)
                }
                try? server.begin()
            }
            let client = Side()
            try Connection.connect(
                host: host, port: listener.address.port!, on: loop, tls: contexts.client, serverName: serverName
            ) {
                client.take($1)
            } completion: { result in
                client.connection = try? result.get()
                try? client.begin()
            }
            simulation.advance(by: .seconds(5))
            #expect(client.isSecured == isTrusted && (client.error == nil) == isTrusted)
            client.connection?.close()
            server.connection?.close()
            listener.close()
        }
    }

    @Test("every kind of error says what to do, in words of its own")
    func descriptions() throws {
        let error = #expect(throws: TLSError.self) {
            try TLSServerContext(identity: TLSIdentity(chain: .bytes([]), key: .bytes([])))
        }
        #expect(
            error?.description
                == "the TLS settings cannot be used: check the certificate, the key and the roots "
                + "(the PEM text given: no certificate)")
    }
}
