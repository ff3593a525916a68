import Glibc
import RunLoopKit
import RunLoopUnix
import Testing

@Suite("The daemon and real clients", .serialized)
struct DaemonTests {
    @Test("redis-cli sets with an expiry, waits, and finds it gone; SIGTERM ends the daemon with status 0")
    func expiry() throws {
        let store = try StoreUnderTest(name: "expiry")
        #expect(try store.cli("SET", "a", "1", "PX", "200") == "OK\n")
        #expect(try store.cli("GET", "a") == "1\n")
        #expect(try store.cli("PTTL", "nothing") == "-2\n")
        usleep(300_000)
        #expect(try store.cli("GET", "a") == "\n")
        try store.kill(.terminate)
        #expect(try store.wait() == .exited(0))
        #expect(access(store.path, F_OK) != 0, "the socket is removed")
        unlink(store.snapshot)
    }

    @Test("a pipelined run of redis-benchmark gets an answer to every request")
    func benchmark() throws {
        let store = try StoreUnderTest(name: "benchmark")
        let (status, output, _) = try run(
            "redis-benchmark",
            ["-s", store.path, "-c", "50", "-P", "16", "-n", "20000", "-t", "ping,set,get,incr", "--csv"])
        #expect(status == .exited(0))
        #expect(output.split(separator: "\n").count == 6, "\(output)")
        #expect(try store.cli("GET", "counter:__rand_int__") == "20000\n")
    }

    @Test("a thousand clients at the same time are served, and a client over the limit receives an error")
    func manyClients() throws {
        let store = try StoreUnderTest(name: "clients", arguments: ["--max-clients", "1000"])
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        limit.rlim_cur = min(limit.rlim_max, 4096)
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        let first = try Client(store.path)
        // The probe of the start may still be counted.
        #expect(try first.information("connected_clients", becomes: "1"))
        let clients = try [first] + (1..<1_000).map { _ in try Client(store.path) }
        for (number, client) in clients.enumerated() { client.send("SET k\(number) \(number)\r\n") }
        for client in clients { #expect(client.receive() == "+OK\r\n") }
        let refused = try Client(store.path)
        #expect(refused.receive() == "-ERR max number of clients reached\r\n")
        #expect(refused.receive() == nil)
        refused.close()
        clients[0].send("DBSIZE\r\n")
        #expect(clients[0].receive() == ":1000\r\n")
        for client in clients { client.close() }
    }

    @Test("no write that was acknowledged is lost when the daemon is stopped under load")
    func stopUnderLoad() throws {
        let store = try StoreUnderTest(name: "load")
        unlink(store.snapshot)
        let clients = try (0..<8).map { _ in try Client(store.path) }
        var sent = [Int](repeating: 0, count: clients.count)
        var acknowledged = [Int](repeating: 0, count: clients.count)
        var isOpen = [Bool](repeating: true, count: clients.count)
        var rounds = 0
        while isOpen.contains(true) {
            rounds += 1
            if rounds == 50 { try store.kill(.terminate) }
            for (number, client) in clients.enumerated() where isOpen[number] {
                let batch = (0..<20).map { "SET c\(number):\(sent[number] + $0) x\r\n" }.joined()
                sent[number] += 20
                client.send(batch)
            }
            for (number, client) in clients.enumerated() where isOpen[number] {
                guard let replies = client.receive() else {
                    isOpen[number] = false
                    client.close()
                    continue
                }
                acknowledged[number] += replies.count { $0 == "+" }
            }
        }
        #expect(try store.wait() == .exited(0))
        #expect(acknowledged.reduce(0, +) >= 8 * 20 * 40)
        let again = try StoreUnderTest(name: "load")
        let reader = try Client(again.path)
        for (number, count) in acknowledged.enumerated() {
            for start in stride(from: 0, to: count, by: 500) {
                let keys = (start..<min(count, start + 500)).map { "c\(number):\($0)" }
                reader.send("EXISTS " + keys.joined(separator: " ") + "\r\n")
                #expect(reader.receive() == ":\(keys.count)\r\n")
            }
        }
        unlink(again.snapshot)
    }

    @Test("SIGHUP writes a snapshot, which a daemon that was killed leaves behind whole")
    func reload() throws {
        let store = try StoreUnderTest(name: "reload")
        #expect(try store.cli("SET", "kept", "1") == "OK\n")
        try store.kill(.hangUp)
        for _ in 0..<200 where access(store.snapshot, F_OK) != 0 { usleep(10_000) }
        #expect(try store.cli("SET", "lost", "1") == "OK\n")
        try store.kill(.kill)
        #expect(try store.wait() == .signalled(.kill, coreDumped: false))
        // The daemon takes over the path that was left behind.
        let again = try StoreUnderTest(name: "reload")
        #expect(try again.cli("EXISTS", "kept") == "1\n")
        #expect(try again.cli("EXISTS", "lost") == "0\n")
        unlink(again.snapshot)
    }

    @Test("unread standard error delays no client, and has all lines when it is read")
    func unreadErrors() throws {
        var ends: [Int32] = [-1, -1]
        try #require(pipe(&ends) == 0)
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        _ = fcntl(ends[1], F_SETFL, O_NONBLOCK)
        let zeros = [UInt8](repeating: 0, count: 1)
        while write(ends[1], zeros, 1) == 1 {}
        // The daemon has the same description of the pipe.
        _ = fcntl(ends[1], F_SETFL, 0)
        let store = try StoreUnderTest(
            name: "unread", arguments: ["--log-level", "info"], errors: ends[1])
        close(ends[1])
        defer { unlink(store.snapshot) }
        let client = try Client(store.path)
        for _ in 0..<20 {
            try store.kill(.hangUp)
            client.send("SET a 1\r\n")
            #expect(client.receive() == "+OK\r\n")
        }
        try store.kill(.terminate)
        var text = ""
        var piece = [UInt8](repeating: 0, count: 1 << 16)
        while case let count = read(ends[0], &piece, piece.count), count > 0 {
            text += String(decoding: piece[..<count], as: UTF8.self)
        }
        close(ends[0])
        #expect(text.contains("listening on \(store.path)") && text.hasSuffix("stopped\n"))
        #expect(try store.wait() == .exited(0))
        client.close()
    }

    @Test("without free descriptors the daemon neither spins nor dies, and serves again when there are some")
    func noDescriptors() throws {
        let store = try StoreUnderTest(name: "descriptors", shell: "ulimit -n 40")
        var clients: [Client] = []
        for _ in 0..<60 { if let client = try? Client(store.path) { clients.append(client) } }
        clients[0].send("PING\r\n")
        #expect(clients[0].receive() == "+PONG\r\n", "\(store.log)")
        // While the clients stay connected, the daemon waits: a spinning one would use all of this second.
        let before = store.processorTime
        sleep(1)
        #expect(store.processorTime - before < .milliseconds(500))
        for client in clients { client.close() }
        var answer = ""
        for _ in 0..<200 where answer != "PONG\n" {
            usleep(100_000)
            answer = try run("redis-cli", ["-s", store.path, "PING"]).1
        }
        #expect(answer == "PONG\n", "\(store.log)")
    }

    @Test("twenty thousand keys expire, none of them early; the greatest delay is printed")
    func manyExpiries() throws {
        let store = try StoreUnderTest(name: "expiries")
        let client = try Client(store.path)
        // All within 400 ms, a second after they are sent.
        let loop = RunLoop.current
        var sent: [RunLoop.Instant] = []
        for start in stride(from: 0, to: 20_000, by: 1_000) {
            sent.append(loop.now)
            client.send((start..<start + 1_000).map { "SET k\($0) x PX \(1_000 + $0 / 50)\r\n" }.joined())
            #expect(client.receive(5_000) == Array(String(repeating: "+OK\r\n", count: 1_000).utf8))
        }
        // The first key of each thousand is polled until it is gone: not before its time, counted from before it was
        // sent.
        for (number, sent) in sent.enumerated() {
            repeat {
                usleep(1_000)
                client.send("EXISTS k\(number * 1_000)\r\n")
            } while client.receive() == ":1\r\n"
            #expect(loop.now >= sent + .milliseconds(1_000 + number * 20))
        }
        #expect(try client.information("expired_keys", becomes: "20000"))
        client.send("DBSIZE\r\n")
        #expect(client.receive() == ":0\r\n")
        print("latest_expiry_us:\(try client.information("latest_expiry_us"))")
        client.close()
    }

    @Test("memory returns to its base after twenty thousand connections")
    func memory() throws {
        // AddressSanitizer would keep freed memory for a while.
        let store = try StoreUnderTest(name: "memory", shell: "export ASAN_OPTIONS=quarantine_size_mb=0")
        let witness = try Client(store.path)
        func connect(_ count: Int) throws {
            for _ in 0..<count / 100 {
                let clients = try (0..<100).map { _ in try Client(store.path) }
                for client in clients { client.send("PING\r\n") }
                for client in clients {
                    _ = client.receive()
                    client.close()
                }
            }
            #expect(try witness.information("connected_clients", becomes: "1"))
        }
        try connect(5_000)
        let base = store.memory
        try connect(20_000)
        // 40 bytes for each: less than any leftover of a connection.
        #expect(store.memory < base + 800_000, "\(base) before, \(store.memory) after")
        witness.close()
    }
}
