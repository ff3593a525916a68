import Glibc
import RunLoopKit
import RunLoopUnix
import Testing

@Suite("Clients that read slowly", .serialized)
struct SlowReaderTests {
    /// Returns the reply to GET.
    private func reply(_ size: Int, _ letter: String = "x") -> [UInt8] {
        Array("$\(size)\r\n\(String(repeating: letter, count: size))\r\n".utf8)
    }

    @Test("everything that was asked for is answered, in order, however slowly it is read", arguments: [false, true])
    func everything(ends: Bool) throws {
        let store = try StoreUnderTest(name: "slow\(ends)")
        let client = try Client(store.path)
        for (key, letter) in [("a", "x"), ("b", "y")] {
            client.set(key, String(repeating: letter, count: 1_000_000))
            #expect(client.receive() == "+OK\r\n")
        }
        // More than may wait for a client that does not read.
        client.send(String(repeating: "GET a\r\nGET b\r\n", count: 25) + "PING\r\n")
        if ends { client.end() }
        let replies = [reply(1_000_000), reply(1_000_000, "y")]
        for number in 0..<50 {
            #expect(client.receive(replies[0].count) == replies[number % 2], "reply \(number)")
            if number % 10 == 0 { usleep(5_000) }
        }
        #expect(client.receive(7) == Array("+PONG\r\n".utf8))
        if ends { #expect(client.receive() == nil) }
        client.close()
    }

    @Test("forty clients that ask for gigabytes and never read take little memory, and others are served")
    func never() throws {
        // AddressSanitizer would keep freed memory for a while.
        let store = try StoreUnderTest(name: "never", shell: "export ASAN_OPTIONS=quarantine_size_mb=0")
        let writer = try Client(store.path)
        writer.set("a", String(repeating: "x", count: 1_000_000))
        #expect(writer.receive() == "+OK\r\n")
        let before = store.memory
        let clients = try (0..<40).map { _ in try Client(store.path) }
        for client in clients { client.send(String(repeating: "GET a\r\n", count: 170)) }
        for _ in 0..<40 {
            // While they are being served, this request waits its turn.
            writer.send("STRLEN a\r\n")
            #expect(writer.receive() == ":1000000\r\n")
        }
        // A reply for each, and twice that at the moment when a buffer grows.
        #expect(store.peakMemory - before < 40 * 3_000_000, "\(before) before, \(store.peakMemory) at most")
        for client in clients { client.close() }
        let whole = try Client(store.path)
        whole.send("MGET" + String(repeating: " a", count: 1_000) + "\r\n")
        #expect(whole.receive() == "-ERR the reply would be longer than 16 MiB\r\n")
        whole.close()
        writer.close()
    }

    @Test("a subscriber that does not read is disconnected, with a line in the log")
    func notices() throws {
        let store = try StoreUnderTest(name: "notices")
        let listener = try Client(store.path)
        listener.send("PSUBSCRIBE *\r\n")
        _ = listener.receive()
        let writer = try Client(store.path)
        // Each notice has this key twice.
        let key = String(repeating: "k", count: 60_000)
        var rounds = 0
        while rounds < 2_000, !store.log.contains("does not read its notices; closed") {
            rounds += 1
            writer.send(
                (0..<10).map { "*5\r\n$3\r\nSET\r\n$60001\r\n\(key)\($0)\r\n$1\r\nx\r\n$2\r\nPX\r\n$1\r\n1\r\n" }
                    .joined())
            #expect(writer.receive(50).count == 50)
        }
        #expect(store.log.contains("does not read its notices; closed"))
        writer.close()
        listener.close()
    }

    @Test("a notice comes at the time of the key, not before")
    func noticeInTime() throws {
        let store = try StoreUnderTest(name: "intime")
        let listener = try Client(store.path)
        listener.send("SUBSCRIBE __keyevent@0__:expired\r\n")
        _ = listener.receive()
        let writer = try Client(store.path)
        let begin = RunLoop.current.now
        writer.send("SET a 1 PX 100\r\n")
        #expect(writer.receive() == "+OK\r\n")
        #expect(listener.receive() == "*3\r\n$7\r\nmessage\r\n$22\r\n__keyevent@0__:expired\r\n$1\r\na\r\n")
        #expect(RunLoop.current.now - begin >= .milliseconds(100))
        writer.close()
        listener.close()
    }
}
