import Glibc
import RunLoopKit
import RunLoopSimulation
import RunLoopTLS
import RunLoopUnix
import TLSTestSupport
import TestSupport
import Testing

/// TLS with the command `openssl` as the other side.
@Suite("TLS with the openssl command")
struct TLSInteroperationTests {
    /// Runs an echo server, and `openssl s_client` that talks to it.
    private func talk(
        _ arguments: [String], _ input: String, options: TLSOptions = TLSOptions(),
        until isDone: (Command, Side?) -> Bool
    ) throws -> (command: Command, side: Side?) {
        try withSimulation { simulation in
            let loop = simulation.loop
            let contexts = try Contexts(options)
            var sides: [Side] = []
            let listener = try Listener(address: Endpoint("127.0.0.1", port: 0), on: loop) { _, descriptor, _ in
                guard let side = try? Side.server(descriptor, on: loop, contexts.server) else { return }
                side.receive = { side, bytes in
                    bytes.withUnsafeBufferPointer { side.received += $0 }
                    side.connection.write(bytes)
                    return bytes.count
                }
                sides.append(side)
            }
            let roots = TemporaryFile(contexts.authority.pem)
            let command = try Command(
                ["s_client", "-connect", listener.address.description, "-CAfile", roots.path] + arguments, on: loop)
            command.write(input)
            simulation.settle { isDone(command, sides.last) }
            command.end()
            simulation.settle { command.hasEnded && sides.allSatisfy { $0.reason != nil } }
            listener.close()
            return (command, sides.last)
        }
    }

    @Test("s_client of both versions verifies the server, is understood, and ends as it should", arguments: ["2", "3"])
    func client(version: String) throws {
        let (command, side) = try talk(
            ["-tls1_\(version)", "-verify_return_error", "-verify_hostname", "localhost", "-servername", "localhost"],
            "hello\n"
        ) { command, _ in command.output.contains("\nhello\n") }
        #expect(command.output.contains("Verify return code: 0 (ok)"))
        #expect(side?.text == "hello\n")
        #expect(side?.reason == .ended)
        #expect(side?.connection.tls?.version == "TLSv1.\(version)")
    }

    @Test("keys are changed in the middle of a conversation")
    func keyUpdate() throws {
        // To s_client, a line with K means: change the keys, and let the server do so, too.
        let (_, side) = try talk(["-tls1_3"], "one\n") { command, side in
            guard command.output.contains("\none\n") else { return false }
            if command.step == 0 { command.write("K\n") }
            if command.step == 1, command.output.contains("KEYUPDATE") { command.write("two\n") }
            return command.output.contains("\ntwo\n")
        }
        #expect(side?.text == "one\ntwo\n")
        #expect(side?.reason == .ended)
    }

    @Test("a client that wants to renegotiate is refused")
    func renegotiation() throws {
        let (_, side) = try talk(["-tls1_2"], "one\n") { command, side in
            guard command.output.contains("\none\n") else { return false }
            if command.step == 0 { command.write("R\n") }
            return side?.reason != nil || command.hasEnded
        }
        #expect(side?.text == "one\n")
        #expect(side?.reason != .ended)
    }

    @Test("a session is taken up again")
    func resumption() throws {
        let session = TemporaryFile()
        try withSimulation { simulation in
            let loop = simulation.loop
            let contexts = try Contexts()
            var wereResumed: [Bool] = []
            var sides: [Side] = []
            let listener = try Listener(address: Endpoint("127.0.0.1", port: 0), on: loop) { _, descriptor, _ in
                guard let side = try? Side.server(descriptor, on: loop, contexts.server) else { return }
                side.connection.handshakeHandler = { connection in
                    wereResumed.append(connection.tls!.isResumed)
                    // s_client keeps the ticket that comes before the first bytes.
                    connection.write("ready\n")
                }
                sides.append(side)
            }
            for option in ["-sess_out", "-sess_in"] {
                let command = try Command(
                    ["s_client", "-connect", listener.address.description, option, session.path], on: loop)
                simulation.settle { command.output.contains("\nready\n") || command.hasEnded }
                command.end()
                simulation.settle { command.hasEnded }
            }
            listener.close()
            #expect(wereResumed == [false, true])
        }
    }

    @Test("an old version is refused, and the server says why")
    func oldVersion() throws {
        var options = TLSOptions()
        options.minimumVersion = .tls13
        let (_, side) = try talk(["-tls1_2"], "", options: options) { _, side in side?.reason != nil }
        #expect(side?.error?.kind == .nothingInCommon)
        #expect(side?.error?.reason == "unsupported protocol")
    }

    @Test(
        "TLS 1.2 is spoken only with ciphers that authenticate the encrypted data and use a key for the connection",
        arguments: ["ALL:!AESGCM:!CHACHA20:@SECLEVEL=0", "kRSA:@SECLEVEL=0", "DHE+AESGCM:@SECLEVEL=0"])
    func weakCiphers(ciphers: String) throws {
        let (_, side) = try talk(["-tls1_2", "-cipher", ciphers], "") { _, side in side?.reason != nil }
        #expect(side?.error?.kind == .nothingInCommon)
        #expect(side?.error?.reason == "no shared cipher")
    }

    @Test(
        "ciphers of TLS 1.2 that do so are", arguments: ["AES128-GCM-SHA256", "AES256-GCM-SHA384", "CHACHA20-POLY1305"])
    func strongCiphers(cipher: String) throws {
        let names = "ECDHE-ECDSA-\(cipher):ECDHE-RSA-\(cipher)"
        let (_, side) = try talk(["-tls1_2", "-cipher", names], "hello\n") { command, _ in
            command.output.contains("\nhello\n")
        }
        #expect(side?.connection.tls?.cipher?.hasSuffix(cipher) == true)
    }

    @Test("nothing is compressed, and a renegotiation is secured by those who ask for it")
    func properties() throws {
        let (command, _) = try talk(["-tls1_2"], "hello\n") { command, _ in command.output.contains("\nhello\n") }
        #expect(command.output.contains("Compression: NONE"))
        #expect(command.output.contains("Secure Renegotiation IS supported"))
    }

    @Test("s_server is connected to, verified, and understood")
    func server() throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            let authority = Authority()
            let identity = authority.identity()
            guard case .bytes(let chain) = identity.chain, case .bytes(let key) = identity.key else { return }
            let (chainFile, keyFile) = (TemporaryFile(chain), TemporaryFile(key))
            // The system chooses the port, which is printed.
            let command = try Command(
                ["s_server", "-accept", "127.0.0.1:0", "-cert", chainFile.path, "-key", keyFile.path, "-rev"], on: loop)
            simulation.settle { command.output.contains("ACCEPT 127.0.0.1:") || command.hasEnded }
            let port = command.output.split(separator: "ACCEPT 127.0.0.1:").last?.prefix { $0.isNumber }
            let address = try Endpoint("127.0.0.1", port: try #require(port.flatMap { UInt16($0) }))
            let client = Side()
            let context = try TLSClientContext(roots: authority.roots)
            try Connection.connect(to: address, on: loop, tls: context, serverName: "localhost") {
                client.take($1)
            } completion: { result in
                guard case .success(let connection) = result else { return }
                client.connection = connection
                try? client.begin()
                connection.write("stressed\n")
            }
            simulation.settle { client.text == "desserts\n" }
            #expect(client.text == "desserts\n")
            #expect(client.isSecured)
            client.connection.finish()
            simulation.settle { client.reason != nil }
            #expect(client.reason == .closed)
            command.kill()
            simulation.settle { command.hasEnded }
        }
    }
}

/// A running `openssl` command.
private final class Command {
    private(set) var output = ""
    private(set) var hasEnded = false
    /// The number of writes to the command after the first one.
    private(set) var step = -1
    private let child: ChildProcess

    init(_ arguments: [String], on loop: RunLoop) throws {
        child = try ChildProcess.spawn(
            .named("openssl"), arguments: arguments, standardInput: .pipe, standardOutput: .pipe, standardError: .pipe)
        for pipe in [child.standardOutput!, child.standardError!] {
            let source = DescriptorSource(fileDescriptor: pipe.fileDescriptor, events: .readable) {
                [weak self] source, _ in
                guard case .bytes(let bytes)? = try? pipe.read() else { return source.invalidate() }
                self?.output += String(decoding: bytes, as: UTF8.self)
            }
            try loop.add(source, forMode: .common)
        }
        try loop.add(ChildSource(child) { [weak self] _, _ in self?.hasEnded = true }, forMode: .common)
    }

    func write(_ text: String) {
        step += 1
        _ = try? child.standardInput!.write(text.utf8)
    }

    /// Ends the command, which closes its connection at the end of its input.
    func end() { child.standardInput!.close() }

    func kill() { _ = try? child.kill(.kill) }
}
