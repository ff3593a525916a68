#if Adapters
import Glibc
import RunLoopHTTP
import RunLoopKit
import RunLoopUnix
import TestSupport
import Testing

/// True if Python has the library for WebSocket.
private let hasWebSockets = (try? wait(for: start("import websockets", []))) == .exited(0)

private func start(_ program: String, _ arguments: [String]) throws -> ChildProcess {
    try ChildProcess.spawn(
        .named("/usr/bin/python3"), arguments: ["-c", program] + arguments, standardInput: .null,
        standardOutput: .null, standardError: .null)
}

private func wait(for child: ChildProcess) throws -> ChildProcess.ExitStatus? {
    let (loop, mode) = (RunLoop.current, RunLoop.Mode("waiting for a child"))
    var status: ChildProcess.ExitStatus?
    try loop.add(ChildSource(child) { status = $1 }, forMode: RunLoop.Modes(mode))
    loop.run(in: mode)
    return status
}

@Suite("WebSockets of an HTTP client with Python's library, on sockets", .enabled(if: hasWebSockets))
struct PythonSocketTests {
    /// A server that writes its port to a file, and does as it is told until the file is taken away.
    private static let server = """
        import asyncio, os, sys, websockets

        async def serve(socket):
            async for message in socket:
                if message == "ping": await asyncio.wait_for(await socket.ping(b"are you there"), 10)
                if message == "fragments": await socket.send(["a" * 70000, "b" * 70000, "é"])
                elif message == "close": await socket.close(4002, "enough")
                elif message == "cut": socket.transport.abort()
                else: await socket.send(message)

        async def main(path):
            async with websockets.serve(serve, "127.0.0.1", 0, subprotocols=["chat"], ping_interval=None) as server:
                with open(path + ".new", "w") as file: file.write(str(server.sockets[0].getsockname()[1]))
                os.rename(path + ".new", path)
                while os.path.exists(path): await asyncio.sleep(0.1)

        asyncio.run(main(sys.argv[1]))
        """

    @Test("messages, fragments, pings and closes, in both directions, and a cut")
    func conversation() throws {
        let directory = TemporaryDirectory()
        let child = try start(Self.server, [directory["port"]])
        let loop = RunLoop.current
        try loop.run {
            try await loop.withTimeout(.seconds(60)) {
                while contents(of: directory["port"]).isEmpty { try await loop.clock.sleep(for: .milliseconds(20)) }
                let address = "ws://127.0.0.1:\(contents(of: directory["port"]))/"
                let client = HTTPClient(on: loop)
                let socket = try await client.webSocket(address, subprotocols: ["other", "chat"])
                #expect(socket.subprotocol == "chat")
                for size in [0, 1, 125, 126, 65_535, 65_536, 900_000] {
                    let message = WebSocket.Message.binary(ByteBuffer(repeating: 7, count: size))
                    try await socket.send(message)
                    #expect(try await socket.next() == message)
                }
                for text in ["hé", "ping"] {
                    try await socket.send(text)
                    #expect(try await socket.next() == .text(text))
                }
                try await socket.send("fragments")
                let long = String(repeating: "a", count: 70_000) + String(repeating: "b", count: 70_000) + "é"
                #expect(try await socket.next() == .text(long))
                try await socket.send("close")
                #expect(try await socket.next() == nil)
                #expect(socket.closeCode == 4_002)
                let other = try await client.webSocket(address)
                #expect(other.subprotocol == nil)
                other.close(4_003)
                #expect(try await other.next() == nil)
                let last = try await client.webSocket(address)
                try await last.send("cut")
                await #expect(throws: HTTPClient.Failure.self) { _ = try await last.next() }
                client.close()
            }
        }
        try #require(unlink(directory["port"]) == 0)
        #expect(try wait(for: child) == .exited(0))
    }
}
#endif
