import ExampleTestSupport
import Glibc
import RunLoopKit
import RunLoopUnix
import Testing

@Suite("The daemon and errors", .serialized)
struct BadInputTests {
    // MARK: Clients

    @Test("a malformed request is answered with an error, and the connection is closed")
    func malformed() throws {
        let store = try StoreUnderTest(name: "malformed")
        let client = try Client(store.path)
        client.send("PING\r\n*1\r\n:\r\nPING\r\n")
        #expect(client.receive() == "+PONG\r\n-ERR Protocol error: expected '$', got ':'\r\n")
        #expect(client.receive() == nil)
        client.close()
        let polite = try Client(store.path)
        polite.send("QUIT\r\nPING\r\n")
        #expect(polite.receive() == "+OK\r\n")
        #expect(polite.receive() == nil)
        polite.close()
        #expect(try store.cli("PING") == "PONG\n")
    }

    @Test("an argument that is too long is refused when it is announced, not when it has come")
    func tooLong() throws {
        let store = try StoreUnderTest(name: "long")
        for (request, error) in [
            ("*2\r\n$3\r\nGET\r\n$8388609\r\n", "-ERR Protocol error: invalid bulk length\r\n"),
            ("*1048577\r\n", "-ERR Protocol error: invalid multibulk length\r\n"),
            (String(repeating: "x", count: 65_537), "-ERR Protocol error: too big inline request\r\n"),
        ] {
            let client = try Client(store.path)
            client.send(request)
            #expect(client.receive() == error)
            #expect(client.receive() == nil)
            client.close()
        }
        #expect(try store.cli("PING") == "PONG\n")
    }

    @Test("a request that is too long as a whole receives an error before the connection is closed")
    func tooLongAsAWhole() throws {
        let store = try StoreUnderTest(name: "whole")
        let client = try Client(store.path)
        let value = String(repeating: "x", count: 8_000_000)
        let part = "$\(value.utf8.count)\r\n\(value)\r\n"
        client.send("*7\r\n$4\r\nMSET\r\n$1\r\na\r\n" + part + "$1\r\nb\r\n" + part + "$800000\r\n")
        #expect(client.receive() == "-ERR Protocol error: too big request\r\n")
        #expect(client.receive() == nil)
        client.close()
    }

    @Test("incomplete requests of many clients take no more memory than they may together, and others are served")
    func incomplete() throws {
        // AddressSanitizer would keep freed memory for a while.
        let store = try StoreUnderTest(
            name: "incomplete", arguments: ["--maxmemory-clients", "32mb", "--loops", "2"],
            shell: "export ASAN_OPTIONS=quarantine_size_mb=0")
        let witness = try Client(store.path)
        witness.send("PING\r\n")
        #expect(witness.receive() == "+PONG\r\n")
        let before = store.memory
        let request = "*1000000\r\n" + String(repeating: "$0\r\n\r\n", count: 600_000)
        let clients = try (0..<20).map { _ in try Client(store.path) }
        for client in clients {
            client.send(request)
            witness.send("PING\r\n")
            #expect(witness.receive() == "+PONG\r\n")
        }
        #expect(try witness.information("connected_clients", becomes: "2"))
        // Twice the limit, and as much again while two arrays grow.
        #expect(store.peakMemory - before < 4 * (32 << 20), "\(before) before, \(store.peakMemory) at most")
        for client in clients + [witness] { client.close() }
    }

    @Test("a peer that says nothing more is closed after the idle timeout, not before")
    func halfOpen() throws {
        let store = try StoreUnderTest(name: "idle", arguments: ["--idle-timeout", "0.3"])
        let begin = RunLoop.current.now
        let client = try Client(store.path)
        client.send("PING\r\n*2\r\n$3\r\nGET")
        #expect(client.receive() == "+PONG\r\n")
        #expect(client.receive() == nil)
        #expect(RunLoop.current.now - begin >= .milliseconds(300))
        client.close()
    }

    @Test("clients that connect and vanish leave nothing behind")
    func vanishing() throws {
        let store = try StoreUnderTest(name: "vanish")
        for number in 0..<300 {
            let client = try Client(store.path)
            // Some send nothing, some break off, and some do not wait for the replies.
            if number % 3 == 1 { client.send("*2\r\n$3\r\nGET\r\n$5\r\nab") }
            if number % 3 == 2 { client.send(String(repeating: "SET k\(number) v\r\n", count: 1_000)) }
            client.close()
        }
        let witness = try Client(store.path)
        #expect(try witness.information("connected_clients", becomes: "1"))
        witness.send("DBSIZE\r\n")
        #expect(witness.receive() == ":100\r\n", "what has been sent whole is carried out")
        witness.close()
    }

    // MARK: The disk

    @Test("no room for a snapshot: a line in the log, the old one intact, nothing beside it; with room it works again")
    func fullDisk() throws {
        let store = try StoreUnderTest(name: "full")
        unlink(store.snapshot)
        let client = try Client(store.path)
        client.send("SET small 1\r\n")
        #expect(client.receive() == "+OK\r\n")
        try store.kill(.hangUp)
        for _ in 0..<2_000 where access(store.snapshot, F_OK) != 0 { usleep(5_000) }
        let old = contents(of: store.snapshot)
        #expect(old.contains("small"))
        // The kernel lets the client write only a part of the next request.
        try store.limitFiles(to: "65536")
        client.set("big", String(repeating: "x", count: 300_000))
        #expect(client.receive() == "+OK\r\n")
        try store.kill(.hangUp)
        #expect(store.logs("write \(store.snapshot).tmp: File too large; the keys are kept in memory"))
        #expect(contents(of: store.snapshot) == old)
        #expect(access(store.snapshot + ".tmp", F_OK) != 0)
        client.send("DBSIZE\r\n")
        #expect(client.receive() == ":2\r\n")
        try store.limitFiles(to: "unlimited")
        client.close()
        try store.kill(.terminate)
        #expect(try store.wait() == .exited(0))
        let again = try StoreUnderTest(name: "full")
        #expect(try again.cli("DBSIZE") == "2\n")
        unlink(again.snapshot)
    }

    @Test("a stop that cannot save acknowledged changes ends with status 74")
    func fullDiskAtTheEnd() throws {
        let store = try StoreUnderTest(name: "end")
        // The kernel lets the store write a log, but no more than that.
        try store.limitFiles(to: "4096")
        #expect(try store.cli("SET", "a", String(repeating: "x", count: 20_000)) == "OK\n")
        try store.kill(.terminate)
        #expect(try store.wait() == .exited(74))
        #expect(store.log.contains("File too large"))
        #expect(access(store.snapshot, F_OK) != 0)
    }

    @Test(
        "no room for the log: changes are refused, reads continue, and the reply to a change comes once it is written",
        arguments: ["always", "everysec", "no"])
    func fullDiskOfTheLog(sync: String) throws {
        let store = try StoreUnderTest(name: "fulllog", logs: sync)
        defer { unlink(store.changes) }
        let writer = try Client(store.path)
        writer.send("SET small 1\r\n")
        #expect(writer.receive() == "+OK\r\n")
        try store.limitFiles(to: "65536")
        writer.set("big", String(repeating: "x", count: 300_000))
        #expect(store.logs("File too large; nothing can be changed until it can be written"))
        // A reply that was not held would have been sent before the line.
        #expect(!writer.hasReply)
        let reader = try Client(store.path)
        reader.send("STRLEN big\r\nSET more 1\r\n")
        let replies = Array(":300000\r\n-MISCONF Errors writing to the append-only log: File too large\r\n".utf8)
        #expect(reader.receive(replies.count) == replies)
        #expect(!writer.hasReply)
        try store.limitFiles(to: "unlimited")
        #expect(writer.receive() == "+OK\r\n")
        #expect(store.logs("changes can be written again"))
        writer.send("SET more 1\r\n")
        #expect(writer.receive() == "+OK\r\n")
        for client in [writer, reader] { client.close() }
        try store.kill(.kill)
        _ = try store.wait()
        let again = try StoreUnderTest(name: "fulllog", logs: sync)
        let last = try Client(again.path)
        last.send("STRLEN big\r\nDBSIZE\r\n")
        #expect(last.receive(13) == Array(":300000\r\n:3\r\n".utf8))
        last.close()
    }

    // MARK: The start

    /// Returns the status of a daemon that cannot start, and its message, which is one line.
    private func refusal(
        _ arguments: [String], environment: [String: String]? = nil
    ) throws -> (status: ChildProcess.ExitStatus, line: Substring) {
        let (status, output, errors) = try run(
            StoreUnderTest.program, ["--log-level", "warning"] + arguments, environment: environment)
        let lines = errors.split(separator: "\n")
        #expect(output == "")
        #expect(lines.count == 1, "\(errors)")
        return (status, lines.first ?? "")
    }

    @Test("a path or a port in use is one clear line and status 69")
    func inUse() throws {
        let store = try StoreUnderTest(name: "use")
        let path = try refusal(["--port", "0", "--unix", store.path])
        #expect(path.status == .exited(69))
        #expect(path.line.contains("bind to \(store.path): Address already in use"))
        // In a mode that never runs: the listener only keeps the port.
        let listener = try Listener(
            address: Endpoint("127.0.0.1", port: 0), on: .current, inModes: RunLoop.Modes(RunLoop.Mode("unused"))
        ) { _, descriptor, _ in close(descriptor) }
        defer { listener.close() }
        let port = try #require(listener.address.port)
        let taken = try refusal(["--port", "\(port)"])
        #expect(taken.status == .exited(69))
        #expect(taken.line.contains("bind to 127.0.0.1:\(port): Address already in use"))
    }

    @Test("a path that cannot be made, and an address that is not this machine's, are one clear line and status 69")
    func notAllowed() throws {
        // No user can create a file there.
        for path in ["/proc/ttlstore", "/dev/null/ttlstore"] {
            let (status, line) = try refusal(["--port", "0", "--unix", path])
            #expect(status == .exited(69))
            #expect(line.contains("bind to \(path): "))
        }
        let (status, line) = try refusal(["--port", "1", "--bind", "192.0.2.1"])
        #expect(status == .exited(69))
        #expect(line.contains("bind to 192.0.2.1:1: Cannot assign requested address"))
    }

    @Test("a snapshot that cannot be read is status 65, and is left alone")
    func brokenSnapshot() throws {
        let path = "/tmp/rlk-store-\(getpid())-broken"
        defer { for file in [path, path + ".lock"] { unlink(file) } }
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        write(descriptor, "nonsense", 8)
        close(descriptor)
        let (status, line) = try refusal(["--port", "0", "--unix", path + ".socket", "--snapshot", path])
        #expect(status == .exited(65))
        #expect(line.contains("\(path) is not a snapshot of this version"))
        #expect(contents(of: path) == "nonsense")
    }

    @Test("a file that another process uses, by whatever path, and a missing directory are one line and status 73")
    func cannotBeKept() throws {
        let store = try StoreUnderTest(name: "locked")
        let (status, line) = try refusal(["--port", "0", "--unix", "/tmp/never", "--snapshot", store.snapshot])
        #expect(status == .exited(73))
        #expect(line.contains("another process uses \(store.snapshot)"))
        let logged = try StoreUnderTest(name: "lockedlog", logs: "no")
        let other = logged.changes + ".other"
        defer { for file in [other, logged.changes] { unlink(file) } }
        #expect(link(logged.changes, other) == 0)
        for path in [logged.changes, other] {
            let (status, line) = try refusal(["--port", "0", "--unix", "/tmp/never", "--log", path])
            #expect(status == .exited(73))
            #expect(line.contains("another process uses \(path)"))
        }
        let missing = try refusal(["--port", "0", "--unix", "/tmp/never", "--log", "/nowhere/log"])
        #expect(missing.status == .exited(73))
        #expect(missing.line.contains("the directory /nowhere/ of /nowhere/log: No such file or directory"))
    }

    @Test(
        "an invalid unit environment is one clear line and status 78",
        arguments: [
            ["NOTIFY_SOCKET": "nowhere"], ["WATCHDOG_USEC": "soon"], ["WATCHDOG_USEC": "0"],
        ])
    func environment(variables: [String: String]) throws {
        let (status, line) = try refusal(["--port", "0", "--unix", "/tmp/never"], environment: variables)
        #expect(status == .exited(78))
        #expect(variables.keys.allSatisfy { line.contains($0) }, "\(line)")
    }

    @Test("sockets that were announced and are not there are one clear line and status 78")
    func announced() throws {
        // LISTEN_PID has to be the daemon's own number, which the shell keeps when it becomes the daemon.
        for (variables, text) in [
            ("LISTEN_FDS=many", "LISTEN_FDS=many in the environment"), ("LISTEN_FDS=1", "descriptor 3"),
            ("LISTEN_FDS=1 LISTEN_FDNAMES=a:b", "LISTEN_FDNAMES has 2 name(s)"),
        ] {
            let (status, _, errors) = try run(
                "sh", ["-c", "LISTEN_PID=$$ \(variables) exec \(StoreUnderTest.program) --log-level warning"])
            #expect(status == .exited(78), "\(errors)")
            #expect(errors.split(separator: "\n").count == 1 && errors.contains(text), "\(errors)")
        }
    }
}
