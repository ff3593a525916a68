import Glibc
@_spi(Ports) import RunLoopCore
@_spi(Ports) import RunLoopKit
import RunLoopUnix
import TestSupport
import Testing

@testable import RunLoopRecording

/// An echo server that also ticks. Stops when it has received `total` bytes, and returns everything that it has seen.
private func serve(
    _ loop: RunLoop, bytes total: Int, tick: Duration = .milliseconds(1), answer: String = "",
    whenReady: (Endpoint) -> Void = { _ in }
) throws -> [String] {
    var log: [String] = []
    var received = 0
    loop.add(
        Timer(timeInterval: tick, repeats: true) { _ in log.append("tick at \(loop.now)") }, forMode: .common)
    let listener = try Listener(address: Endpoint("127.0.0.1", port: 0), on: loop) { _, descriptor, peer in
        log.append("accepted \(peer)")
        let connection = Connection(adopting: descriptor, on: loop) { connection, bytes in
            received += bytes.count
            log.append("\(loop.now): \(bytes.count) bytes, \(loop.randomNumbers.next() as UInt64)")
            connection.write(bytes)
            connection.write(answer)
            return bytes.count
        }
        connection.closeHandler = { _, reason in
            log.append("closed: \(reason)")
            if received >= total { loop.stop() }
        }
        try? connection.start()
    }
    whenReady(listener.address)
    loop.run(in: .default)
    listener.close()
    return log
}

/// Talks to the server from another thread, over `connections` connections one after the other.
func visit(_ address: Endpoint, connections: Int, pieces: Int, size: Int) -> LoopThread {
    LoopThread(name: "visitor", in: RunLoop.realWorld) { loop in
        var left = connections
        func visitOnce() {
            var awaited = pieces * size
            Connection.connect(to: address, on: loop) { connection, bytes in
                awaited -= bytes.count
                if awaited <= 0 { connection.finish() }
                return bytes.count
            } completion: { result in
                guard case .success(let connection) = result else { return }
                connection.closeHandler = { _, _ in
                    left -= 1
                    if left > 0 { visitOnce() }
                }
                try? connection.start()
                for piece in 0..<pieces { connection.write([UInt8](repeating: UInt8(piece & 0xff), count: size)) }
            }
        }
        visitOnce()
    }
}

@Suite struct RecordingTests {
    @Test func `a run of one loop is repeated`() throws {
        let record = RecordPath()
        var visitor: LoopThread?
        let log = try withRecording(to: record.path) { loop in
            try serve(loop, bytes: 20 * 3000) { visitor = visit($0, connections: 20, pieces: 3, size: 1000) }
        }
        visitor?.join()
        #expect(log.count > 60)
        let outcome = replay(record) { try serve($0, bytes: 20 * 3000) }
        #expect(outcome.value == log, "\(outcome)")
        // A record can be replayed any number of times.
        #expect(replay(record) { try serve($0, bytes: 20 * 3000) }.value == log)
    }

    @Test func `a replay leaves the flight of the recorded run as it is`() throws {
        let (record, flight) = (RecordPath(), RecordPath())
        let path = flight.path
        defer { unlink("\(path).1") }
        @Sendable func program(_ loop: RunLoop) throws -> Int {
            let recorder = try FlightRecorder(loop, at: path)
            var fires = 0
            loop.add(
                Timer(timeInterval: .milliseconds(1), repeats: true) { _ in
                    fires += 1
                    if fires == 5 { loop.stop() }
                }, forMode: .default)
            loop.run(in: .default)
            try recorder.memory.write(to: "\(path).1")
            return try recorder.memory.flight().calls.count
        }
        let calls = try withRecording(to: record.path) { try program($0) }
        let bytes = flight.bytes
        unlink("\(path).1")
        let recorded = try Flight(contentsOf: path)
        #expect(calls == 5 && recorded.calls.count == 5)
        #expect(replay(record) { try program($0) }.value == calls)
        #expect(flight.bytes == bytes && access("\(path).1", F_OK) != 0)
    }

    @Test func `a replay reports the event at which the program differs`() throws {
        let record = RecordPath()
        var visitor: LoopThread?
        _ = try withRecording(to: record.path) { loop in
            try serve(loop, bytes: 300, tick: .seconds(100)) {
                visitor = visit($0, connections: 1, pieces: 1, size: 300)
            }
        }
        visitor?.join()
        let other = replay(record) { try serve($0, bytes: 300, tick: .seconds(100), answer: "!") }
        let divergence = try #require(other.divergence)
        #expect(divergence.recorded.hasPrefix("send"), "\(divergence)")
        #expect(divergence.asked.hasPrefix("send"), "\(divergence)")
        #expect(divergence.thread == "main")
        // Another period of the timer shows in the deadline of the first sleep.
        let late = replay(record) { try serve($0, bytes: 300, tick: .seconds(200)) }
        #expect(late.divergence?.asked.hasPrefix("a wait until") == true, "\(late)")
        // A shorter program.
        let less = replay(record) { _ in [String]() }
        #expect(less.divergence?.recorded.hasPrefix("the time") == true, "\(less)")
    }

    @Test func `a replay ends at the given event, or at the end of the record`() throws {
        let record = RecordPath()
        var visitor: LoopThread?
        _ = try withRecording(to: record.path) { loop in
            try serve(loop, bytes: 300) { visitor = visit($0, connections: 1, pieces: 1, size: 300) }
        }
        visitor?.join()
        #expect(replay(record, until: .init(event: 30)) { try serve($0, bytes: 300) }.end == .limit)
        // A process that ended at any byte, also within an event, leaves a shorter record.
        let (whole, contents) = (record.bytes, try RecordContents(record.path))
        let place = RecordLayout.pageSize
        let state = ChunkState(word: record.word(at: place + 16))
        for end in RecordLayout.chunkHead..<state.used {
            let sum = whole[place + RecordLayout.chunkHead..<place + end].withUnsafeBytes { bytes in
                var tape = RecordedTape(number: 0)
                tape.chunks = [bytes]
                var reader = TapeReader(tape)
                while !reader.isAtEnd, !reader.isOver { _ = EventText.describe(&reader, after: 0, contents) }
                return reader.check.short
            }
            record.bytes = whole
            record.set(0, at: RecordLayout.Field.end.rawValue * 8)
            record.set(ChunkState(number: 0, used: end, sum: sum).word, at: place + 16)
            let outcome = replay(record) { try serve($0, bytes: 300) }
            #expect(outcome.end == .endOfRecord(.beingWritten(process: Int(getpid()))), "cut at \(end): \(outcome)")
        }
    }

    @Test(arguments: [256, 300, 4096]) func `events lie across the ends of chunks and files`(chunkSize: Int) throws {
        let record = RecordPath()
        var options = RecordingOptions()
        options.chunkSize = chunkSize
        options.partSize = 4096 + 10 * chunkSize
        var visitor: LoopThread?
        let log = try withRecording(to: record.path, options: options) { loop in
            try serve(loop, bytes: 20 * 3000) { visitor = visit($0, connections: 20, pieces: 3, size: 1000) }
        }
        visitor?.join()
        #expect(access("\(record.path).2", F_OK) == 0)
        let outcome = replay(record) { try serve($0, bytes: 20 * 3000) }
        #expect(outcome.value == log)
        if outcome.value == nil { Issue.record("\(outcome)") }
    }

    @Test func `a recording stops at its limit and the program continues`() throws {
        let record = RecordPath()
        var options = RecordingOptions()
        options.chunkSize = 4096
        options.limit = 5 * 4096
        var visitor: LoopThread?
        let log = try withRecording(to: record.path, options: options) { loop in
            try serve(loop, bytes: 20 * 3000) { visitor = visit($0, connections: 20, pieces: 3, size: 1000) }
        }
        visitor?.join()
        #expect(log.filter { $0.hasPrefix("accepted") }.count == 20)
        #expect(record.bytes.count <= 5 * 4096)
        let outcome = replay(record) { try serve($0, bytes: 20 * 3000) }
        #expect(outcome.end == .endOfRecord(.limit), "\(outcome)")
    }

    @Test func `a replay without payloads reports the event at which it ends`() throws {
        let record = RecordPath()
        var options = RecordingOptions()
        options.keepsPayloads = false
        var visitor: LoopThread?
        _ = try withRecording(to: record.path, options: options) { loop in
            try serve(loop, bytes: 300) { visitor = visit($0, connections: 1, pieces: 1, size: 300) }
        }
        visitor?.join()
        guard case .withoutPayload("main", let event) = replay(record, { try serve($0, bytes: 300) }).end else {
            Issue.record("the replay did not end where the program reads")
            return
        }
        #expect(event > 10)
    }

    @Test func `the event of a limit is written as a number, or as two`() {
        #expect(ReplayOptions.Position("1234") == ReplayOptions.Position(event: 1234))
        #expect(ReplayOptions.Position("2:5") == ReplayOptions.Position(event: 5, ofThread: 2))
        #expect(ReplayOptions.Position(event: 5, ofThread: 2).description == "2:5")
        for text in ["", ":", "2:", ":5", "-1", "1:-1", "-1:1", "1:2:3", "a"] {
            #expect(ReplayOptions.Position(text) == nil, "\(text)")
        }
    }

    /// The head is changed, too: a replay always ends.
    @Test(arguments: seeds(usually: 1)) func `a record with any changed bytes is read without harm`(seed: UInt64) throws
    {
        let record = RecordPath()
        var visitor: LoopThread?
        _ = try withRecording(to: record.path) { loop in
            try serve(loop, bytes: 600) { visitor = visit($0, connections: 2, pieces: 1, size: 300) }
        }
        visitor?.join()
        let whole = record.bytes
        var random = SeededGenerator(seed: seed)
        for _ in 0..<100 {
            var changed = whole
            // Some of the used bytes, or a shorter file.
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                let place = Int.random(in: 0..<(Bool.random(using: &random) ? 256 : 4096 + 400), using: &random)
                changed[place] = UInt8.random(in: 0...255, using: &random)
            }
            if Bool.random(using: &random) { changed.removeLast(Int.random(in: 0..<changed.count, using: &random)) }
            record.bytes = changed
            if let read = try? Record(contentsOf: record.path) { _ = (read.description, read.clients.count) }
        }
    }

    @Test func `a file that is not a record is refused`() throws {
        let record = RecordPath()
        for bytes in [[], [UInt8](repeating: 7, count: 10_000)] {
            record.bytes = bytes
            guard case .failed(RecordError.notARecord) = replay(record, { _ in 0 }) else {
                Issue.record("\(bytes.count) bytes were taken for a record")
                continue
            }
        }
        #expect(throws: RecordError.file("/nowhere/record", errno: ENOENT)) {
            try withRecording(to: "/nowhere/record") { _ in }
        }
    }
}
