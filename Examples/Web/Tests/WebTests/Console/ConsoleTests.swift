import Glibc
import RunLoopUnix
import Testing

/// The path of a browser that runs without a screen; `nil` if there is none.
private let browser: String? = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].first {
    path in
    access(path, X_OK) == 0
}

@Suite("The console", .timeLimit(.minutes(5)))
struct ConsoleTests {
    private static let script = #filePath.replacing("ConsoleTests.swift", with: "console-browser")

    private func start(_ arguments: String..., in directory: TemporaryDirectory) throws -> WebUnderTest {
        try WebUnderTest(["--threads", "2", "--console", directory["console"]] + arguments, in: directory)
    }

    private func key(in directory: TemporaryDirectory) -> String {
        String(decoding: (directory.contents(of: "console.key") ?? []).dropLast(), as: UTF8.self)
    }

    @Test(
        "a browser shows the loops and their connections on the page, obeys keys, and shows nothing without the key",
        .enabled("needs chromium, and Python's websockets") { browser != nil && hasWebSockets })
    func page() throws {
        let directory = TemporaryDirectory()
        let web = try start("--console-page", in: directory)
        let result = try output(
            of: "/usr/bin/python3",
            [Self.script, try #require(browser), web.url("/console"), key(in: directory)])
        #expect(result.text == "passed\n" && result.failure == nil, "\(result.text)\n\(web.log)")
        #expect(!web.log.contains(key(in: directory)))
        try web.stop()
    }

    @Test("only the daemon's user can read the key, which is new at each start and removed at the stop")
    func keyFile() throws {
        let directory = TemporaryDirectory()
        var keys: Set<String> = []
        for _ in 0..<2 {
            let web = try start("--console-page", in: directory)
            var status = stat()
            #expect(stat(directory["console.key"], &status) == 0 && status.st_mode & 0o777 == 0o600)
            #expect(stat(directory["console"], &status) == 0 && status.st_mode & 0o777 == 0o600)
            keys.insert(key(in: directory))
            try web.stop()
            #expect(stat(directory["console.key"], &status) != 0 && stat(directory["console"], &status) != 0)
        }
        #expect(keys.count == 2 && keys.allSatisfy { $0.count == 32 })
    }

    @Test("without the option there is no page and no socket")
    func off() throws {
        let directory = TemporaryDirectory()
        let web = try start(in: directory)
        #expect(
            try output(of: "curl", ["-s", "-o", "/dev/null", "-w", "%{http_code}", web.url("/console")]).text == "404")
        let client = try RawClient(port: web.port)
        client.send(Self.opening)
        #expect(client.receiveToEnd().hasPrefix("HTTP/1.1 404 "), "as for any other target of WebSocket")
        #expect(directory.contents(of: "console.key") == nil)
        try web.stop()
        let without = try WebUnderTest()
        #expect(
            try output(of: "curl", ["-s", "-o", "/dev/null", "-w", "%{http_code}", without.url("/console")]).text
                == "404")
        try without.stop()
    }

    private static let opening = """
        GET /console/snapshots HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
        sec-websocket-version: 13\r\nsec-websocket-key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n
        """

    @Test("a client with a wrong key is closed with 1008, one without a word after the time for a head")
    func refused() throws {
        let directory = TemporaryDirectory()
        directory.write(Array(#"{"headSeconds": 1}"#.utf8), to: "limits")
        let web = try WebUnderTest(
            limits: nil, ["--console", directory["console"], "--console-page"], in: directory)
        for text in ["0123456789abcdef0123456789abcdef", "", nil] as [String?] {
            let client = try RawClient(port: web.port)
            client.send(Self.opening)
            #expect(client.receive(until: "\r\n\r\n").hasPrefix("HTTP/1.1 101 "))
            if let text { client.send([0x81, 0x80 | UInt8(text.utf8.count), 0, 0, 0, 0] + Array(text.utf8)) }
            #expect(client.receive(.max) == [0x88, 2, 0x03, 0xf0])
        }
        try web.stop()
    }
}
