#if Adapters
import Glibc
import RunLoopHTTP
import RunLoopKit
import RunLoopTLS
import RunLoopUnix
import TLSTestSupport
import TestSupport
import Testing

/// A headless browser, if one is installed.
private let browser = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"]
    .map { "/usr/bin/" + $0 }.first { access($0, X_OK) == 0 }

@Suite("A browser as the client of an HTTP server, on sockets", .enabled(if: browser != nil))
struct BrowserTests {
    /// A page that tries the server, and posts the names of what did not work, and the version of HTTP.
    private static let page = """
        <!doctype html><title>Trials</title><script>
        const failures = []
        async function trial(name, body) {
            try { if (await body() !== true) failures.push(name) } catch (error) { failures.push(name + ": " + error) }
        }
        const text = async (path, options) => (await fetch(path, options)).text()
        const long = "ä".repeat(100000)
        function socketTrial() {
            return new Promise(resolve => {
                const socket = new WebSocket(location.origin.replace("http", "ws") + "/socket", ["chat"])
                socket.binaryType = "arraybuffer"
                const answers = []
                socket.onopen = () => { socket.send("hé"); socket.send(new Uint8Array(200000)) }
                socket.onmessage = event => {
                    answers.push(event.data)
                    if (answers.length === 2) socket.send("close")
                }
                socket.onclose = event => resolve(answers[0] === "hé" && answers[1].byteLength === 200000
                    && event.code === 4002 && event.wasClean && socket.protocol === "chat")
            })
        }
        function eventsTrial() {
            return new Promise(resolve => {
                const source = new EventSource("/events"), seen = []
                source.onmessage = event => {
                    seen.push(event.data)
                    if (seen.length === 3) { source.close(); resolve(seen.join() === "1,2,3") }
                }
            })
        }
        async function trials() {
            await trial("echo", async () => await text("/echo", { method: "POST", body: long }) === long)
            await trial("many at once", async () => {
                const answers = await Promise.all([...Array(100).keys()].map(n => text("/slow?" + n)))
                return answers.every((answer, n) => answer === "/slow?" + n)
            })
            await trial("a body in pieces", async () => {
                const reader = (await fetch("/pieces")).body.getReader()
                let count = 0
                for (let piece; !(piece = await reader.read()).done;) count += piece.value.length
                return count === 3000000
            })
            await trial("an answer that is given up", async () => {
                const stop = new AbortController()
                const reader = (await fetch("/endless", { signal: stop.signal })).body.getReader()
                await reader.read()
                stop.abort()
                try { await reader.read(); return false } catch { return (await text("/slow?after")) === "/slow?after" }
            })
            await trial("statuses", async () => (await fetch("/status/204", { method: "DELETE" })).status === 204
                && (await fetch("/status/404")).status === 404 && (await fetch("/slow", { method: "HEAD" })).ok)
            await trial("a redirection", async () => (await fetch("/redirection")).url.endsWith("/slow?redirected"))
            await trial("a cookie", async () => { await text("/cookie"); return await text("/cookie") === "kept=yes" })
            await trial("an answer that is cut off", async () => {
                try { await text("/cut"); return false } catch { return true }
            })
            await trial("a body that is too long", async () =>
                (await fetch("/short", { method: "POST", body: long })).status === 413)
            await trial("events", eventsTrial)
            await trial("WebSocket", socketTrial)
            const version = performance.getEntriesByType("navigation")[0].nextHopProtocol
            await text("/done", { method: "POST", body: [version, ...failures].join("; ") })
        }
        trials()
        </script>
        """

    private nonisolated(nonsending) func answer(
        _ request: HTTPServer.Request, _ done: (String) -> Void
    ) async throws -> HTTPServer.Response {
        switch request.path {
        case "/": return .bytes(ByteBuffer(string: Self.page), type: "text/html; charset=utf-8")
        case "/echo": return .text(String(buffer: try await request.body.collect(upTo: 1_000_000)))
        case "/short": return .text(String(buffer: try await request.body.collect(upTo: 1_000)))
        case "/slow":
            try await request.loop.clock.sleep(for: .milliseconds(20))
            return .text(request.head.path ?? "")
        case "/pieces":
            return .stream(type: "text/plain") { writer in
                for _ in 0..<300 { try await writer.write(String(repeating: "x", count: 10_000)) }
            }
        case "/endless":
            return .stream(type: "text/plain") { writer in
                while true { try await writer.write(String(repeating: "x", count: 10_000)) }
            }
        case "/cut":
            return .stream(length: 100, type: "text/plain") { writer in
                try await writer.write("short")
                throw HTTPServer.Refusal(.internalServerError)
            }
        case "/events":
            return .stream(type: "text/event-stream") { writer in
                for number in 1...3 { try await writer.write("data: \(number)\n\n") }
                try await request.loop.clock.sleep(for: .seconds(60))
            }
        case "/status/204": return HTTPServer.Response(.noContent)
        case "/redirection":
            return HTTPServer.Response(.found, headerFields: [.location: "/slow?redirected"])
        case "/cookie":
            var response = HTTPServer.Response.text(request.headerFields[.cookie] ?? "")
            response.headerFields[.setCookie] = "kept=yes"
            return response
        case "/socket":
            return .webSocket(subprotocol: "chat") { socket in
                for try await message in socket {
                    if message == .text("close") { socket.close(4_002) } else { try await socket.send(message) }
                }
            }
        case "/done":
            done(String(buffer: try await request.body.collect(upTo: 10_000)))
            return .text("")
        default: throw HTTPServer.Refusal(.notFound)
        }
    }

    @Test(
        "fetches, streams, events, cookies, errors and a WebSocket work in HTTP/1.1 and, with TLS, in HTTP/2",
        arguments: [(false, "http/1.1"), (true, "h2")])
    func trials(isSecure: Bool, version: String) throws {
        let loop = RunLoop.current
        let log = Log<String>()
        let server = HTTPServer(on: loop) { request in try await answer(request) { log.append($0) } }
        if isSecure { try server.setTLS(Authority().identity()) }
        let port = try server.listen(on: Endpoint("127.0.0.1", port: 0)).port
        let directory = TemporaryDirectory()
        let child = try ChildProcess.spawn(
            .named(try #require(browser)),
            arguments: [
                "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--ignore-certificate-errors",
                "--remote-debugging-port=0", "--user-data-dir=\(directory["browser"])",
                "\(isSecure ? "https" : "http")://localhost:\(port ?? 0)/",
            ],
            standardInput: .null, standardOutput: .null, standardError: .null, group: .newGroup)
        var hasEnded = false
        try loop.add(ChildSource(child) { _, _ in hasEnded = true }, forMode: .common)
        try loop.run {
            try await loop.withTimeout(.seconds(120)) {
                while log.entries.isEmpty, !hasEnded { try await loop.clock.sleep(for: .milliseconds(20)) }
            }
        }
        #expect(log.entries == [version])
        // The program may be a script that starts the browser.
        kill(-child.processIdentifier, SIGKILL)
        while !hasEnded { loop.run(in: .default, until: loop.now + .milliseconds(20)) }
        server.close()
        loop.run(in: .default, until: loop.now + .seconds(5))
    }
}
#endif
