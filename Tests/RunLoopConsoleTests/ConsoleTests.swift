import Glibc
import RunLoopConsole
@_spi(Ports) import RunLoopKit
import RunLoopUnix
import TestSupport
import Testing

/// Tasks that never end, kept so that LeakSanitizer does not report them.
private let kept = Locked<[Task<Void, any Error>]>([])

@Suite("The console of a process", .timeLimit(.minutes(15)))
struct ConsoleTests {
    private let folder = TemporaryDirectory()
    private var path: String { folder["console"] }

    /// Makes a thread with a loop that stays until it is stopped.
    private func makeThread(_ name: String) -> LoopThread {
        LoopThread(name: name) { $0.add(CustomSource(), forMode: .common) }
    }

    @Test("a deadlock of two tasks, a handler that blocks and a timer that leaks are seen, each on another loop")
    func acceptance() async throws {
        let console = try Console(at: path)
        let threads = ["tasks", "blocked", "leaking"].map { makeThread($0) }
        defer { for thread in threads { thread.stop() } }
        for thread in threads { console.add(thread.remote, named: thread.name) }
        let client = try #require(ConsoleClient(path))
        _ = client.first { $0.loops.count == 3 && $0.loops.allSatisfy { $0.age != nil } }

        let line: UInt32 = #line
        threads[0].remote.perform { loop in
            final class Tasks { var one, other: Task<Void, any Error>? }
            let tasks = Tasks()
            tasks.one = loop.task(name: "one") { try await tasks.other!.value }
            tasks.other = loop.task(name: "other") { try await tasks.one!.value }
            kept.withLock { $0 += [tasks.one!, tasks.other!] }
        }
        let isReleased = Flag()
        threads[1].remote.perform { loop in
            let timer = Timer(timeInterval: .zero, repeats: false) { _ in while !isReleased.isSet { usleep(1000) } }
            timer.name = "stuck"
            loop.add(timer, forMode: .default)
        }
        threads[2].remote.perform { loop in
            loop.add(
                Timer(timeInterval: .milliseconds(20), repeats: true) { _ in
                    let leaked = Timer(timeInterval: .seconds(3600), repeats: true) { _ in }
                    leaked.name = "leaked"
                    loop.add(leaked, forMode: .default)
                }, forMode: .default)
        }

        let deadlocked = client.first { !$0.cycles.isEmpty }
        #expect(deadlocked?.cycles.map { $0.map(\.name) } == [["one", "other"]])
        #expect(deadlocked?.cycles.first?.map(\.loop) == ["tasks", "tasks"])
        let origins = (7...8).map { "RunLoopConsoleTests/ConsoleTests.swift:\(line + UInt32($0) - 3)" }
        #expect(deadlocked?.cycles.first?.map(\.origin) == origins)
        let tasks = client.first { $0.loops.first?.tasks.count == 2 }?.loops.first?.tasks
        #expect(
            tasks?.map(\.activity)
                == ["other", "one"].enumerated().map { "awaits task \"\($1)\" (\(origins[1 - $0]))" })

        let blocked = client.first { $0.loops[1].state == .blocked }?.loops[1]
        #expect(blocked?.call?.name == "stuck" && blocked?.call?.kind == "timer")
        #expect(blocked?.call?.origin == "RunLoopConsoleTests/ConsoleTests.swift:\(line + 10)")
        #expect(blocked?.handlers.first?.name == "stuck")

        let leaking = client.first { $0.loops[2].lines.contains { $0.growth != nil } }?.loops[2]
        #expect(leaking?.lines.filter { $0.growth != nil }.map(\.name) == ["leaked"])
        #expect(leaking?.lines.first?.origin == "RunLoopConsoleTests/ConsoleTests.swift:\(line + 17)")

        isReleased.set()
        #expect(client.first { $0.loops[1].call == nil && $0.loops[1].state == .asleep } != nil)
    }

    @Test("tasks of two loops that await each other are a cycle, and each loop reports it")
    func twoLoops() throws {
        let console = try Console(at: path)
        let threads = ["left", "right"].map { makeThread($0) }
        defer { for thread in threads { thread.stop() } }
        let tasks = Locked<[String: Task<Void, any Error>]>([:])
        for (own, other) in [(0, 1), (1, 0)] {
            let (thread, name) = (threads[own], threads[other].name)
            console.add(thread.remote, named: thread.name)
            thread.remote.perform { loop in
                let task = loop.task(name: thread.name) {
                    while true {
                        if let task = tasks.withLock({ $0[name] }) { return try await task.value }
                        try await loop.clock.sleep(for: .milliseconds(1))
                    }
                }
                tasks.withLock { $0[thread.name] = task }
                kept.withLock { $0.append(task) }
            }
        }
        let client = try #require(ConsoleClient(path))
        // Loops answer one after the other: the report of the first may be older than the cycle.
        let snapshot = client.first { snapshot in
            !snapshot.cycles.isEmpty
                && snapshot.loops.allSatisfy { $0.tasks.first?.activity?.hasPrefix("awaits task") == true }
        }
        #expect(snapshot?.cycles.first?.map(\.loop).sorted() == ["left", "right"] && snapshot?.cycles.count == 1)
        let activities = snapshot?.loops.map { $0.tasks.first?.activity ?? "-" }
        #expect(
            activities?[0].hasPrefix("awaits task \"right\" (") == true && activities?[0].hasSuffix(" of right") == true
        )
        #expect(
            activities?[1].hasPrefix("awaits task \"left\" (") == true && activities?[1].hasSuffix(" of left") == true)
    }

    @Test("the socket is private to its user; a live socket is not taken over, a dead one is")
    func socket() throws {
        let console = try Console(at: path)
        var status = stat()
        #expect(stat(path, &status) == 0 && status.st_mode & 0o777 == 0o600)
        #expect(throws: SystemError.self) { try Console(at: path) }
        #expect(ConsoleClient(path) != nil)
        console.close()
        #expect(stat(path, &status) != 0 && errno == ENOENT)

        // As left behind by a killed process.
        let dead = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        try Endpoint(path: path).withSystemBytes { bytes in
            let address = bytes.baseAddress!.assumingMemoryBound(to: sockaddr.self)
            #expect(bind(dead, address, socklen_t(bytes.count)) == 0)
        }
        close(dead)
        let next = try Console(at: path)
        #expect(ConsoleClient(path) != nil)
        next.close()

        folder.write("not a socket", to: "console")
        #expect(throws: SystemError.self) { try Console(at: path) }
        #expect(throws: SystemError.self) { try Console(at: folder["nowhere/console"]) }
    }

    @Test("without a descriptor for its loop a console throws the refusal")
    func refused() async {
        await #expect(processExitsWith: .success) {
            _ = RunLoop.Remote.main
            leaveDescriptors(3)
            do {
                _ = try Console(at: "/tmp/console")
            } catch let error as RunLoop.StartError {
                precondition(error.errno == EMFILE)
                return
            }
            fatalError("a console without a descriptor")
        }
    }

    @Test("without clients a loop is not queried and does not record; a loop that ends leaves the console")
    func unwatched() throws {
        let console = try Console(at: path, interval: .milliseconds(10))
        let (thread, other) = (makeThread("one"), makeThread("other"))
        defer { thread.stop() }
        console.add(thread.remote, named: "one")
        console.add(other.remote, named: "other", recording: .always)
        func records(_ thread: LoopThread) -> Bool { try! thread.remote.performAndWait { $0.flightMemory != nil } }
        #expect(eventually { records(other) })
        #expect(!records(thread))

        var client = ConsoleClient(path)
        #expect(client?.first { $0.loops.map(\.name) == ["one", "other"] && $0.loops[0].age != nil } != nil)
        #expect(records(thread))
        other.stop()
        #expect(client?.first { $0.loops.map(\.name) == ["one"] } != nil)
        client = nil
        #expect(eventually { !records(thread) })
        let passes = try thread.remote.performAndWait { $0.statistics.passes }
        usleep(100_000)
        #expect(try thread.remote.performAndWait { $0.statistics.passes } - passes <= 2)

        client = ConsoleClient(path)
        #expect(eventually { records(thread) })
        console.close()
        #expect(eventually { !records(thread) })
    }

    @Test("a loop that is blocked before a client comes is shown with its handler if it records, and else as silent")
    func blockedBefore() throws {
        let console = try Console(at: path)
        let threads = ["always", "recorder", "unwatched"].map { makeThread($0) }
        let recorder = try threads[1].remote.performAndWait { LoopBound(try FlightRecorder($0), loop: $0) }
        let isReleased = Flag()
        defer {
            isReleased.set()
            for thread in threads { thread.stop() }
        }
        for thread in threads {
            console.add(thread.remote, named: thread.name, recording: thread.name == "always" ? .always : .whileWatched)
        }
        var client = ConsoleClient(path)
        _ = client?.first { $0.loops.count == 3 && $0.loops.allSatisfy { $0.age != nil } }
        client = nil
        #expect(eventually { try! threads[2].remote.performAndWait { $0.flightMemory == nil } })
        let count = Counter()
        for thread in threads {
            thread.remote.perform { loop in
                loop.perform(afterDelay: .zero) {
                    count.add()
                    while !isReleased.isSet { usleep(1000) }
                }
            }
        }
        #expect(eventually { count.value == 3 })
        client = ConsoleClient(path)
        let shown = client?.first { $0.loops.prefix(2).allSatisfy { $0.state == .blocked } }
        #expect(shown?.loops.map(\.state) == [.blocked, .blocked, .silent], "\(shown as Any)")
        #expect(shown?.loops.map(\.call?.kind) == ["delayed call", "delayed call", nil])
        #expect(shown?.loops.allSatisfy { $0.age == nil } == true)
        withExtendedLifetime(recorder) {}
    }

    @Test("a client that does not read misses snapshots, and the others do not")
    func idleClient() throws {
        let console = try Console(at: path, interval: .milliseconds(10))
        let thread = makeThread("one")
        defer { thread.stop() }
        thread.remote.perform { loop in
            for _ in 0..<100 {
                loop.add(Timer(timeInterval: .seconds(3600), repeats: true) { _ in }, forMode: .default)
            }
        }
        console.add(thread.remote, named: "one")
        let (idle, reader) = (try #require(ConsoleClient(path)), try #require(ConsoleClient(path)))
        // More than the kernel keeps for a connection.
        #expect(reader.first { $0.number > 150 } != nil)
        idle.read()
        let numbers = idle.snapshots.map(\.number)
        #expect(numbers.count < 150)
        let seen = idle.snapshots.last?.number ?? 0
        #expect(idle.first { $0.number > seen + 1 } != nil)
        let all = reader.snapshots.map(\.number)
        #expect(all == Array((all.first ?? 0)...(all.last ?? 0)))
    }

    @Test("connections are shown with the bytes that the kernel has counted")
    func connections() throws {
        let console = try Console(at: path, interval: .milliseconds(10))
        let thread = makeThread("one")
        defer { thread.stop() }
        console.add(thread.remote, named: "one")
        let (own, peer) = makeTCPSockets()
        defer { close(peer) }
        thread.remote.perform { loop in
            let connection = Connection(adopting: own, on: loop) { connection, bytes in
                connection.write(Array(repeating: 7, count: bytes.count * 2))
                return bytes.count
            }
            try! connection.start()
        }
        #expect(write(peer, [UInt8](repeating: 1, count: 1000), 1000) == 1000)
        let client = try #require(ConsoleClient(path))
        let shown = client.first { $0.loops.first?.connections.first?.sent ?? 0 >= 2000 }?.loops.first
        #expect(shown?.counts.connections == 1)
        let connection = shown?.connections.first
        #expect(connection?.descriptor == own && connection?.received == 1000)
        #expect(connection?.peer?.hasPrefix("127.0.0.1:") == true, "\(connection as Any)")
        #expect(connection?.origin.hasPrefix("RunLoopConsoleTests/ConsoleTests.swift:") == true)
    }

    @Test("the end of the console closes its connections")
    func end() throws {
        let console = try Console(at: path)
        let client = try #require(ConsoleClient(path))
        _ = client.first { _ in true }
        console.close()
        #expect(eventually { client.isClosedByPeer })
    }
}
