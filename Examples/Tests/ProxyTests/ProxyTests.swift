import ExampleTestSupport
import Glibc
import RunLoopKit
import RunLoopTLS
import RunLoopUnix
import Testing

/// A proxy in a process of its own.
private final class ProxyUnderTest {
    let port: UInt16
    private let child: ChildProcess

    init(to hostPort: UInt16, tls files: [String] = [], errors: Int32? = nil) throws {
        // An unused port.
        let listener = try Listener(address: Endpoint("127.0.0.1", port: 0), on: .current) { _, _, _ in }
        port = listener.address.port!
        listener.close()
        child = try .spawn(
            .path(pathOfProgram("Proxy")), arguments: ["\(port)", "127.0.0.1", "\(hostPort)"] + files,
            standardInput: .null, standardOutput: .null, standardError: errors.map { .descriptor($0) } ?? .null)
    }

    deinit {
        _ = try? child.kill(.kill)
    }

    /// The number of bytes of memory that the process has in use.
    var memory: Int {
        let words = contents(of: "/proc/\(child.processIdentifier)/statm").split(separator: " ")
        return (words.count > 1 ? Int(words[1]) ?? 0 : 0) * Int(sysconf(Int32(_SC_PAGESIZE)))
    }
}

/// A connection of the test, and all bytes that it received.
private final class End {
    let connection: Connection
    private(set) var text = ""
    private(set) var hasEnded = false
    private(set) var reason: Connection.CloseReason?

    init(_ connection: Connection) {
        self.connection = connection
        connection.endHandler = { [unowned self] _ in hasEnded = true }
        connection.closeHandler = { [unowned self] in reason = $1 }
    }

    func receive(_ bytes: Span<UInt8>) -> Int {
        bytes.withUnsafeBufferPointer { text += String(decoding: $0, as: UTF8.self) }
        return bytes.count
    }

    var wasReset: Bool {
        guard case .failed(let error as SystemError) = reason else { return false }
        return error.errno == ECONNRESET
    }
}

@Suite("The proxy", .serialized, .timeLimit(.minutes(15)))
struct ProxyTests {
    private var loop: RunLoop { .current }
    private let made = Made()

    /// The objects of a test, closed at its end, because other tests use the loop of the thread, too.
    private final class Made {
        var listeners: [Listener] = []
        var ends: [End] = []

        func close() {
            for listener in listeners { listener.close() }
            for end in ends { end.connection.close() }
        }
    }

    private func run(until isSo: () -> Bool) {
        #expect(
            eventually {
                loop.run(in: .default, until: loop.now + .milliseconds(5))
                return isSo()
            })
    }

    /// Makes a host, and collects the connections that it has accepted.
    private func listen() throws -> (listener: Listener, ends: () -> [End]) {
        final class Ends { var all: [End] = [] }
        let ends = Ends()
        let listener = try Listener(address: Endpoint("127.0.0.1", port: 0), on: loop) {
            [loop, made] _, descriptor, _ in
            weak var own: End?
            let end = End(Connection(adopting: descriptor, on: loop) { own?.receive($1) ?? 0 })
            own = end
            ends.all.append(end)
            made.ends.append(end)
            try? end.connection.start()
        }
        made.listeners.append(listener)
        return (listener, { ends.all })
    }

    /// Connects a client to the proxy, as soon as the proxy listens.
    private func connect(to proxy: ProxyUnderTest, tls: TLSClientContext? = nil) throws -> End {
        var retry = Connection.Retry()
        (retry.firstDelay, retry.maximumDelay, retry.maximumTries) = (.milliseconds(10), .milliseconds(100), nil)
        var end: End?
        let receive: Connection.ReceiveHandler = { end?.receive($1) ?? 0 }
        let completion: (Result<Connection, Connection.ConnectError>) -> Void = { result in
            if case .success(let connection) = result { end = End(connection) }
        }
        if let tls {
            try Connection.connect(
                host: "127.0.0.1", port: proxy.port, on: loop, retry: retry, tls: tls, serverName: "localhost",
                receive: receive, completion: completion)
        } else {
            Connection.connect(
                host: "127.0.0.1", port: proxy.port, on: loop, retry: retry, receive: receive, completion: completion)
        }
        run { end != nil }
        made.ends.append(end!)
        try end!.connection.start()
        return end!
    }

    /// Makes the key and the self-signed certificate of a server.
    private func makeIdentity(in directory: TemporaryDirectory) {
        let status = system(
            "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=localhost "
                + "-addext subjectAltName=DNS:localhost -keyout \(directory["key"]) -out \(directory["chain"]) 2> /dev/null"
        )
        #expect(status == 0, "openssl makes no certificate")
    }

    @Test("a reset of either side is a reset of the other, and no end", arguments: [false, true], [false, true])
    func resets(ofHost: Bool, isTLS: Bool) throws {
        let directory = TemporaryDirectory()
        makeIdentity(in: directory)
        let (listener, hosts) = try listen()
        defer { made.close() }
        let proxy = try ProxyUnderTest(
            to: listener.address.port!, tls: isTLS ? [directory["chain"], directory["key"]] : [])
        let client = try connect(
            to: proxy, tls: isTLS ? TLSClientContext(roots: .certificates(.file(directory["chain"]))) : nil)
        client.connection.write("hello")
        run { hosts().first?.text == "hello" }
        let host = hosts()[0]
        host.connection.write("half of an ans")
        run { client.text == "half of an ans" }
        let (one, other) = ofHost ? (host, client) : (client, host)
        one.connection.reset()
        run { other.reason != nil || other.hasEnded }
        #expect(other.wasReset && !other.hasEnded, "\(String(describing: other.reason))")
    }

    @Test("the end of one side is passed on to the other, which may continue")
    func ends() throws {
        let (listener, hosts) = try listen()
        defer { made.close() }
        let proxy = try ProxyUnderTest(to: listener.address.port!)
        let client = try connect(to: proxy)
        client.connection.write("question")
        client.connection.finishWriting()
        run { hosts().first?.hasEnded == true }
        #expect(hosts()[0].text == "question")
        hosts()[0].connection.write("answer")
        hosts()[0].connection.finish()
        run { client.hasEnded || client.reason != nil }
        #expect(client.text == "answer" && !client.wasReset)
        client.connection.close()
    }

    @Test("a client whose host is not there is reset; one that leaves before ends the attempt")
    func noHost() throws {
        // Without a listener there, the kernel refuses.
        let taken = try Listener(address: Endpoint("127.0.0.1", port: 0), on: loop) { _, _, _ in }
        let port = taken.address.port!
        taken.close()
        let proxy = try ProxyUnderTest(to: port)
        let patient = try connect(to: proxy)
        patient.connection.write("hello")
        run { patient.reason != nil || patient.hasEnded }
        #expect(patient.wasReset && !patient.hasEnded)

        let broken = try connect(to: proxy)
        broken.connection.write("hello")
        broken.connection.reset()
        let left = try connect(to: proxy)
        left.connection.finishWriting()
        run { left.hasEnded || left.reason != nil }
        let witness = try connect(to: proxy)
        var accepted = 0
        let listener = try Listener(address: Endpoint("127.0.0.1", port: port), on: loop) { _, descriptor, _ in
            accepted += 1
            close(descriptor)
        }
        defer {
            listener.close()
            made.close()
        }
        run { witness.reason != nil || witness.hasEnded }
        loop.run(in: .default, until: loop.now + .seconds(3))
        #expect(accepted == 1)
    }

    @Test("many connections leave little memory behind, and a full standard error blocks none of them")
    func burst() throws {
        let (reading, writing) = makePipe()
        defer { for end in [reading, writing] { close(end) } }
        // The pipe is full from the start.
        _ = fcntl(writing, F_SETFL, O_NONBLOCK)
        while write(writing, [0], 1) == 1 {}
        _ = fcntl(writing, F_SETFL, 0)
        let (listener, hosts) = try listen()
        defer { made.close() }
        let proxy = try ProxyUnderTest(to: listener.address.port!, errors: writing)
        let text = String(repeating: "x", count: 8_000)
        func burst(_ count: Int) throws {
            let before = hosts().count
            let clients = try (0..<count).map { _ in try connect(to: proxy) }
            for client in clients { client.connection.write(text) }
            run { hosts().count == before + count && hosts()[before...].allSatisfy { $0.text.utf8.count == 8_000 } }
            for client in clients { client.connection.close() }
            run { hosts()[before...].allSatisfy(\.hasEnded) }
            for host in hosts()[before...] { host.connection.close() }
            run { hosts()[before...].allSatisfy { $0.reason != nil } }
        }
        try burst(20)
        let base = proxy.memory
        for _ in 0..<2 { try burst(400) }
        // 10 kB for each: less than a buffer in use takes.
        #expect(proxy.memory < base + 4_000_000, "\(base) before, \(proxy.memory) after")
    }
}
