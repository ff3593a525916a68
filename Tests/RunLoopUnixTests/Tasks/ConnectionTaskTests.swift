import Glibc
@_spi(Ports) import RunLoopKit
import RunLoopUnix
import TestSupport
import Testing

@Suite("Connections of tasks", .timeLimit(.minutes(5)))
struct ConnectionTaskTests {
    /// Returns the bytes of a pattern, from a position on.
    private static func pattern(_ count: Int, from start: Int = 0) -> [UInt8] {
        (start..<start + count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
    }

    /// Returns the number of open sockets in the process.
    private static func openSockets() -> Int { openFiles().count { $0.hasPrefix("socket:") } }

    private static func connections(
        on loop: RunLoop, limits: Connection.Limits = .init()
    ) -> (Connection, Connection) {
        let pair = makeSockets()
        return (
            Connection(adopting: pair.0, on: loop, limits: limits),
            Connection(adopting: pair.1, on: loop, limits: limits)
        )
    }

    @Test("one connection reads everything that the other writes, to the end")
    func both() async {
        await onLoop { loop in
            let (one, other) = Self.connections(on: loop)
            let sent = Self.pattern(3_000_000)
            loop.task { try await one.withStream { try await $0.write(sent) } }
            var received: [UInt8] = []
            try await other.withStream { stream in
                while let bytes = try await stream.read(atMost: 10_000) {
                    #expect(bytes.count <= 10_000)
                    received += bytes
                }
                let atEnd = try await stream.read()
                #expect(atEnd == nil)
            }
            let isSame = received == sent
            #expect(isSame)
        }
    }

    @Test("a task writes more than the high watermark while a handler of the connection runs the loop")
    func writeWithinHandler() async {
        await onLoop { loop in
            var limits = Connection.Limits()
            (limits.highWatermark, limits.lowWatermark) = (1000, 100)
            let (one, other) = Self.connections(on: loop, limits: limits)
            let sent = Self.pattern(100_000)
            one.endHandler = { one in
                loop.task { try await one.write(sent) }
                loop.run(in: .default, until: loop.now + .milliseconds(1))
            }
            try one.start()
            try other.start()
            other.finishWriting()
            var received: [UInt8] = []
            while received.count < sent.count, let bytes = try await other.read() { received += bytes }
            let isSame = received == sent
            #expect(isSame)
            for connection in [one, other] { connection.close() }
        }
    }

    @Test("a parser is shown its unused input together with new input, and never the same twice")
    func receive() async {
        await onLoop { loop in
            let (one, other) = Self.connections(on: loop)
            loop.task {
                try await one.withStream { stream in
                    for part in ["a", "b\ncd", "\n", "rest"] {
                        try await stream.write(part)
                        try await loop.clock.sleep(for: .milliseconds(2))
                    }
                }
            }
            var shown: [String] = []
            while try await other.receive({ bytes in
                let text = String(decoding: Array(bytes.indices.map { bytes[$0] }), as: UTF8.self)
                shown.append(text)
                return text.lastIndex(of: "\n").map { text.utf8.distance(from: text.startIndex, to: $0) + 1 } ?? 0
            }) {}
            #expect(shown == ["a", "ab\ncd", "cd\n", "rest"])
            #expect(other.unusedInput == 4)
            other.close()
        }
    }

    @Test("a peer whose output no task reads is stopped, and so is a writer whose peer does not read")
    func backPressure() async {
        await onLoop { loop in
            var limits = Connection.Limits()
            (limits.highWatermark, limits.lowWatermark) = (100_000, 10_000)
            let (one, other) = Self.connections(on: loop, limits: limits)
            let gigabyte = [UInt8](repeating: 7, count: 1 << 30)
            let writer = loop.task { try await one.write(gigabyte) }
            try other.start()
            try await loop.clock.sleep(for: .milliseconds(20))
            #expect(one.pendingOutput <= 200_000)
            #expect(other.unusedInput <= 64 * 1024)
            writer.cancel()
            let error = await #expect(throws: Connection.WriteError.self) { try await writer.value }
            let written = error?.written ?? 0
            #expect(written > 0 && written < gigabyte.count)
            // Only the accepted bytes are sent.
            loop.task { try await one.withStream { _ in } }
            var received = 0
            while let bytes = try await other.read() { received += bytes.count }
            #expect(received == written)
            other.close()
        }
    }

    @Test("a cancelled read takes nothing, wherever it is cancelled")
    func cancelledReads() async {
        let seed = UInt64.random(in: 0 ... .max)
        await onLoop { loop in
            var random = SeededGenerator(seed: seed)
            let (one, other) = Self.connections(on: loop)
            let sent = Self.pattern(20_000)
            let writer = loop.task {
                var random = SeededGenerator(seed: seed &+ 1)
                var position = 0
                while position < sent.count {
                    let count = min(Int.random(in: 1...40, using: &random), sent.count - position)
                    try await one.write(Array(sent[position..<position + count]))
                    position += count
                    if Bool.random(using: &random) { await Task.yield() }
                }
                one.finish()
            }
            var received: [UInt8] = []
            var isOver = false
            while !isOver {
                let reader = loop.task {
                    guard let bytes = try await other.read(atMost: 7) else { return true }
                    received += bytes
                    return false
                }
                for _ in 0..<Int.random(in: 0...3, using: &random) { await Task.yield() }
                reader.cancel()
                do { isOver = try await reader.value } catch { #expect(error is CancellationError, "seed \(seed)") }
            }
            try await writer.value
            let isSame = received == sent
            #expect(isSame, "seed \(seed)")
            other.close()
        }
    }

    @Test("a second task that reads, or writes to a full connection, is refused")
    func second() async {
        await onLoop { loop in
            let (one, other) = Self.connections(on: loop)
            let first = loop.task { try await one.read() }
            await Task.yield()
            await #expect(throws: RunLoop.WaitError.alreadyWaiting("what a connection receives")) {
                try await one.read()
            }
            try await other.write("hello")
            #expect(try await first.value == Array("hello".utf8))
            let writer = loop.task { try await one.write([UInt8](repeating: 0, count: 10_000_000)) }
            await Task.yield()
            await #expect(throws: RunLoop.WaitError.alreadyWaiting("room in a connection")) { try await one.write([1]) }
            writer.cancel()
            _ = await writer.result
            one.close()
            other.close()
        }
    }

    @Test("one task's write is not interrupted by another task's writes")
    func whole() async {
        await onLoop { loop in
            var limits = Connection.Limits()
            (limits.highWatermark, limits.lowWatermark) = (1000, 100)
            let (one, other) = Self.connections(on: loop, limits: limits)
            var isWritten = false
            loop.task {
                try await one.write([UInt8](repeating: 1, count: 2_000_000))
                isWritten = true
            }
            await Task.yield()
            // A task that tries again and again.
            loop.task {
                while !isWritten {
                    do { try await one.write([2]) } catch RunLoop.WaitError.alreadyWaiting {}
                    await Task.yield()
                }
                one.finish()
            }
            var received: [UInt8] = []
            while let bytes = try await other.read() { received += bytes }
            #expect(received.lastIndex(of: 1) == 1_999_999)
            other.close()
        }
    }

    @Test("input that arrives while the reading task is held back waits in the system")
    func heldBack() {
        let (isOver, waiting, sent, received) = onThread {
            let loop = RunLoop.current
            loop.addCommonMode(.tracking)
            let sockets = makeSockets()
            let (connection, peer) = (Connection(adopting: sockets.0, on: loop), Peer(sockets.1))
            var (sent, received) = (0, 0)
            let task = loop.task(inModes: .default) {
                while let bytes = try await connection.read() { received += bytes.count }
            }
            loop.run(in: .default, until: loop.now)
            let block = [UInt8](repeating: 7, count: 10_000)
            for _ in 0..<100 {
                while case let count = send(peer.descriptor, block, block.count, 0), count > 0 { sent += count }
                loop.run(in: .tracking, until: loop.now)
            }
            let waiting = connection.unusedInput
            peer.close()
            loop.task {
                try await task.value
            } then: { _ in
                connection.close()
            }
            let isOver = loop.run(in: .default, until: loop.now + .seconds(60)) == .finished
            return (isOver, waiting, sent, received)
        }
        // The bytes that resumed the task, and as many again.
        #expect(waiting <= 128 * 1024)
        #expect(isOver && received == sent)
    }

    @Test("the end of a connection ends the waits for it, with the reason")
    func ends() async {
        await onLoop { loop in
            let (one, other) = Self.connections(on: loop)
            let reader = loop.task { try await one.read() }
            await Task.yield()
            one.close()
            await #expect(throws: Connection.ClosedError(reason: .closed)) { try await reader.value }
            await #expect(throws: Connection.ClosedError(reason: .closed)) { try await one.read() }
            await #expect(throws: Connection.WriteError.self) { try await one.write([1]) }
            let atEnd = try await other.read()
            #expect(atEnd == nil)
            other.close()

            var limits = Connection.Limits()
            limits.idleTimeout = .milliseconds(2)
            let (third, fourth) = Self.connections(on: loop, limits: limits)
            await #expect(throws: Connection.ClosedError(reason: .idleTimeout)) { try await third.read() }
            fourth.close()
        }
    }

    @Test("a loop that ends says so to the tasks that wait for its connections")
    func loopEnds() async {
        let log = Log<String>()
        let thread = LoopThread(name: "short") { loop in
            let (reader, silent) = Self.connections(on: loop)
            let (writer, deaf) = Self.connections(on: loop)
            loop.task {
                _ = try await reader.read()
                withExtendedLifetime(silent) {}
            } then: {
                log("\($0)")
            }
            loop.task {
                try await writer.withStream { try await $0.write([UInt8](repeating: 0, count: 10_000_000)) }
                withExtendedLifetime(deaf) {}
            } then: {
                log("\($0)")
            }
            loop.perform(afterDelay: .milliseconds(5)) { loop.stop() }
        }
        thread.remote.perform { $0.perform(afterDelay: .milliseconds(5)) { thread.stop() } }
        await thread.ended()
        #expect(
            log.entries.count == 2 && log.entries.allSatisfy { $0.contains("the run loop \"short\" has ended") },
            "\(log.entries)")
    }

    @Test("a socket that a task opens as its loop ends is closed, and the task receives an error")
    func openedAtTheEnd() async throws {
        let (one, other) = makeSockets()
        let peer = Peer(other)
        let addresses = Log<Endpoint>()
        let log = Log<String>()
        let thread = LoopThread(name: "short") { loop in
            loop.task {
                while !Task.isCancelled { await Task.yield() }
                _ = try await Connection(adopting: one, on: loop).read()
            } then: {
                log("\($0)")
            }
            loop.task {
                while !Task.isCancelled { await Task.yield() }
                let listener = try Listener(address: Endpoint("127.0.0.1", port: 0), on: loop)
                addresses.append(listener.address)
                _ = try await listener.accept()
            } then: {
                log("\($0)")
            }
        }
        thread.stop()
        await thread.ended()
        #expect(log.entries == Array(repeating: "failure(the run loop \"short\" has ended)", count: 2))
        #expect(peer.hasEnded())
        await onLoop { loop in
            for address in addresses.entries {
                await #expect(throws: SystemError.self) { _ = try await Connection.connect(to: address, on: loop) }
            }
        }
        #expect(addresses.entries.count == 1)
    }

    @Test("an error in the body closes at once; a cancelled task does not wait for a peer that does not read")
    func withStream() async {
        struct Refusal: Error {}
        await onLoop { loop in
            let (one, other) = Self.connections(on: loop)
            await #expect(throws: Refusal.self) { try await one.withStream { _ in throw Refusal() } }
            #expect(!one.isOpen)
            other.close()
            let (third, fourth) = Self.connections(on: loop)
            let flush = loop.task {
                try await third.withStream { stream in
                    // As much as fits below the mark, in addition to the system's buffer.
                    stream.pauseReading()
                    try await stream.write([UInt8](repeating: 1, count: 400_000))
                }
            }
            try await loop.clock.sleep(for: .milliseconds(5))
            #expect(third.isOpen)
            flush.cancel()
            let result = await flush.result
            #expect(throws: (any Error).self) { try result.get() }
            #expect(!third.isOpen)
            fourth.close()
        }
    }

    @Test("each of the tasks that have the stream waits until everything is sent")
    func withStreamTwice() async {
        await onLoop { loop in
            let (one, other) = Self.connections(on: loop)
            try await one.write([UInt8](repeating: 1, count: 300_000))
            let tasks = (0..<2).map { _ in
                loop.task {
                    try await one.withStream { _ in }
                    return one.isOpen
                }
            }
            await Task.yield()
            var received = 0
            while let bytes = try await other.read() { received += bytes.count }
            #expect(received == 300_000)
            for task in tasks { #expect(try await task.value == false) }
            other.close()
        }
    }

    @Test("tasks accept, connect, and talk; the sockets they have opened are closed")
    func acceptAndConnect() async {
        // In a process of its own, because its descriptors are counted.
        await #expect(processExitsWith: .success) { try await withLoop(Self.acceptAndConnect) }
    }

    @Sendable
    private static func acceptAndConnect(on loop: RunLoop) async throws {
        let listener = try Listener(address: Endpoint("127.0.0.1", port: 0), on: loop)
        let address = listener.address
        let server = loop.task {
            var served = 0
            while let connection = try await listener.accept() {
                served += 1
                loop.task {
                    try await connection.withStream { stream in
                        while try await stream.receive({ bytes in
                            stream.write(bytes)
                            return bytes.count
                        }) {}
                    }
                }
            }
            return served
        }
        let open = openSockets()
        for number in 0..<200 {
            let client = try await Connection.connect(to: address, on: loop)
            try await client.withStream { stream in
                try await stream.write("\(number)")
                #expect(try await stream.read() == Array("\(number)".utf8))
            }
        }
        // Connections accepted meanwhile end by themselves.
        for _ in 0..<1000 where openSockets() != open { try await loop.clock.sleep(for: .milliseconds(1)) }
        #expect(openSockets() == open)
        await #expect(throws: RunLoop.WaitError.alreadyWaiting("connections")) { _ = try await listener.accept() }
        listener.close()
        #expect(try await server.value >= 200)
        let none = try await listener.accept()
        #expect(none == nil)
        await #expect(throws: SystemError.self) {
            _ = try await Connection.connect(to: address, on: loop)
        }
    }

    @Test("the end of a loop ends an attempt to connect of a task that only prefers the loop")
    func connectLosesLoop() async {
        let thread = LoopThread(name: "short") { $0.add(CustomSource(), forMode: .common) }
        let task = Task(executorPreference: thread.remote.executor().task) {
            var retry = Connection.Retry()
            (retry.firstDelay, retry.jitter) = (.seconds(60), 0)
            // Without a listener there, it waits for the second try.
            _ = try await Connection.connect(host: "127.0.0.1", port: 1, on: RunLoop.installed!, retry: retry)
        }
        thread.remote.perform { loop in loop.perform(afterDelay: .milliseconds(20)) { thread.stop() } }
        await #expect(throws: RunLoop.WaitError.loopEnded(loop: "short")) { try await task.value }
        await thread.ended()
    }

    @Test("a connection that was accepted and not taken is closed")
    func notTaken() async {
        await onLoop { loop in
            let listener = try Listener(address: Endpoint("127.0.0.1", port: 0), on: loop)
            let acceptor = loop.task { try await listener.accept() != nil }
            let client = try await Connection.connect(to: listener.address, on: loop)
            #expect(try await acceptor.value)
            #expect(try await client.read() == nil)
            client.close()
            listener.close()
        }
    }

    @Test("a child's output and input, awaited")
    func pipes() async {
        await onLoop { loop in
            let child = try ChildProcess.spawn(.named("cat"), standardInput: .pipe, standardOutput: .pipe)
            let pipes = Connection(reading: child.standardOutput, writing: child.standardInput, on: loop)
            try await pipes.write("meow")
            pipes.finishWriting()
            #expect(try await pipes.read() == Array("meow".utf8))
            #expect(try await pipes.read() == nil)
            pipes.close()
        }
    }
}
