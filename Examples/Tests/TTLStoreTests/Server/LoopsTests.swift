import ExampleTestSupport
import Glibc
import RunLoopKit
import RunLoopUnix
import Testing

@Suite("The daemon on several loops", .serialized)
struct LoopsTests {
    @Test("clients on all loops work on the same keys, and every request of a pipelined run has its answer")
    func benchmark() throws {
        let store = try StoreUnderTest(name: "loops", arguments: ["--loops", "3"])
        let (status, output, _) = try run(
            "redis-benchmark",
            ["-s", store.path, "-c", "50", "-P", "16", "-n", "20000", "-t", "ping,set,get,incr,mset", "--csv"])
        #expect(status == .exited(0))
        #expect(output.split(separator: "\n").count == 7, "\(output)")
        #expect(try store.cli("GET", "counter:__rand_int__") == "20000\n")
        #expect(try store.cli("CONFIG", "GET", "io-threads") == "io-threads\n3\n")
        #expect(store.threads.filter { $0.hasPrefix("clients") }.sorted() == ["clients 0", "clients 1", "clients 2"])
        try store.kill(.terminate)
        #expect(try store.wait() == .exited(0))
        unlink(store.snapshot)
    }

    @Test("a key that a client has set on one loop expires for those who listen on the others")
    func notices() throws {
        let store = try StoreUnderTest(name: "loopnotices", arguments: ["--loops", "3"])
        let listeners = try (0..<3).map { _ in try Client(store.path) }
        for listener in listeners {
            listener.send("SUBSCRIBE __keyevent@0__:expired\r\n")
            #expect(listener.receive()?.hasPrefix("*3\r\n$9\r\nsubscribe") == true)
        }
        let client = try Client(store.path)
        client.send("SET a 1 PX 30\r\n")
        #expect(client.receive() == "+OK\r\n")
        let notice = "*3\r\n$7\r\nmessage\r\n$22\r\n__keyevent@0__:expired\r\n$1\r\na\r\n"
        for listener in listeners { #expect(listener.receive() == notice) }
        client.send("INFO\r\n")
        #expect(client.receive()?.contains("pubsub_channels:1\r\n") == true)
        for client in listeners + [client] { client.close() }
    }

    @Test("keys that clients on several loops have set are in the snapshot and in the log of a daemon that was stopped")
    func kept() throws {
        for logs in [nil, "always"] {
            unlink(StoreUnderTest.changes(of: "loopskept"))
            let store = try StoreUnderTest(name: "loopskept", arguments: ["--loops", "3"], logs: logs)
            if logs == nil { unlink(store.snapshot) }
            let clients = try (0..<6).map { _ in try Client(store.path) }
            for round in 0..<50 {
                for (number, client) in clients.enumerated() {
                    client.send("SET k\(number):\(round) \(round)\r\nSET e\(number):\(round) 1 EX 1000\r\nINCR sum\r\n")
                }
                for client in clients { _ = client.receive(10) }
            }
            for client in clients {
                client.send("PING\r\n")
                while client.receive()?.hasSuffix("+PONG\r\n") == false {}
                client.close()
            }
            try store.kill(.terminate)
            #expect(try store.wait() == .exited(0))
            let again = try StoreUnderTest(name: "loopskept", arguments: ["--loops", "2"], logs: logs)
            let reader = try Client(again.path)
            reader.send("DBSIZE\r\n")
            #expect(reader.receive() == ":601\r\n")
            reader.send("GET sum\r\n")
            #expect(reader.receive() == "$3\r\n300\r\n")
            // These keys were set by no client of this daemon; their times to live belong to the main loop.
            for number in 0..<6 { reader.send("PEXPIRE e\(number):7 20\r\nSET e\(number):8 1\r\n") }
            usleep(200_000)
            _ = reader.receive(6 * 9)
            reader.send("DBSIZE\r\n")
            #expect(reader.receive() == ":595\r\n")
            reader.close()
            try again.kill(.terminate)
            #expect(try again.wait() == .exited(0))
            unlink(again.snapshot)
            unlink(again.changes)
        }
    }
}
