import Glibc
@_spi(Ports) import RunLoopCore
@_spi(Ports) import RunLoopKit
import TestSupport
import Testing

@testable import RunLoopRecording

/// A record of a process of its own, which its parent reads.
private func recordOfChild(_ process: pid_t) -> String { "/tmp/rlk-record-of-child-\(process)" }

private func recordAndTruncate() throws {
    let record = RecordPath()
    var options = RecordingOptions()
    options.chunkSize = 4096
    let log = try withRecording(to: record.path, options: options) { loop in
        let thread = LoopThread(name: "other") { $0.add(CustomSource(), forMode: .common) }
        let log = tick(loop, times: 3000) { count in
            if count == 100 { truncate(record.path, 0) }
            if count % 100 == 0 { try? thread.remote.performAndWait { _ in } }
        }
        thread.stop()
        thread.join()
        return log
    }
    #expect(log.count == 3000)
    #expect(record.bytes.isEmpty)
}

private func recordWithoutRoom() throws {
    let record = RecordPath()
    var options = RecordingOptions()
    options.chunkSize = 4096
    signal(SIGXFSZ, SIG_IGN)
    // As a full file system does, even within a chunk.
    var limit = rlimit(rlim_cur: 5 * 4096 + 1000, rlim_max: rlim_t.max)
    setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
    let log = try withRecording(to: record.path, options: options) { tick($0, times: 5000) }
    #expect(log.count == 5000)
    guard case .noRoom = try Record(contentsOf: record.path).end else { exit(3) }
    guard case .endOfRecord(.noRoom)? = replay(record, { tick($0, times: 5000) }).end else { exit(4) }
}

private func recordAndDie(_ path: String) throws {
    _ = try withRecording(to: path) { loop in
        tick(loop, times: 100) { if $0 == 50 { kill(getpid(), SIGKILL) } }
    }
}

/// Records a program and replays it with the usual handlers, in the same process, which has the same seeds.
private func replayToTheEnd(limit: Int, until event: UInt64?) throws {
    let record = RecordPath()
    var options = RecordingOptions()
    (options.chunkSize, options.limit) = (4096, limit)
    _ = try withRecording(to: record.path, options: options) { tick($0, times: 3000) }
    var replaying = ReplayOptions()
    replaying.until = event.map { ReplayOptions.Position(event: $0) }
    _ = try withReplay(of: record.path, options: replaying) { tick($0, times: 3000) }
    exit(1)
}

@Suite(.serialized) struct RecordEndTests {
    @Test func `a record is a new file with the mode 600`() throws {
        let record = RecordPath()
        record.bytes = [1, 2, 3]
        chmod(record.path, 0o644)
        let former = open(record.path, O_RDONLY)
        defer { close(former) }
        var options = RecordingOptions()
        (options.chunkSize, options.partSize) = (4096, 8192)
        for part in 2...3 {
            let file = fopen("\(record.path).\(part)", "w")!
            fclose(file)
            chmod("\(record.path).\(part)", 0o666)
        }
        _ = try withRecording(to: record.path, options: options) { tick($0, times: 3000) }
        for path in [record.path, "\(record.path).2", "\(record.path).3"] {
            var status = stat()
            #expect(stat(path, &status) == 0 && status.st_mode & 0o7777 == 0o600, "\(path)")
        }
        // Another process may have the former file mapped.
        var status = stat()
        #expect(fstat(former, &status) == 0 && status.st_size == 3 && status.st_nlink == 0)
    }

    @Test func `a record replaces nothing but a regular file`() throws {
        let record = RecordPath()
        unlink(record.path)
        mkfifo(record.path, 0o600)
        #expect(throws: RecordError.file(record.path, errno: EEXIST)) { try withRecording(to: record.path) { _ in } }
        unlink(record.path)
        symlink("/dev/null", record.path)
        #expect(throws: RecordError.file(record.path, errno: EEXIST)) { try withRecording(to: record.path) { _ in } }
    }

    @Test func `a program continues when its record is truncated, and says so once`() async throws {
        let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
            try recordAndTruncate()
        }
        let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        let lines = text.split(separator: "\n").filter { $0.contains("the recording stopped before the program") }
        #expect(lines.count == 1, "\(text)")
    }

    @Test func `a program reports that its record had no room, and so does the replay`() async throws {
        let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
            try recordWithoutRoom()
        }
        let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        #expect(
            text.split(separator: "\n").filter { $0.contains("the recording stopped before") }.count == 1, "\(text)")
    }

    @Test func `the record of a killed process has all events until its end`() async throws {
        await #expect(processExitsWith: .signal(SIGKILL)) { try recordAndDie(recordOfChild(getppid())) }
        let path = recordOfChild(getpid())
        defer { unlink(path) }
        let record = try Record(contentsOf: path)
        #expect(record.end == .processEnded)
        #expect(record.description.contains("the record was not closed"))
        let draws = record.events(ofThread: 0).filter { $0.text.hasPrefix("randomNumber") }
        #expect(draws.count == 50)
    }

    @Test func `a record under way, closed, and cut are three ends`() throws {
        let record = RecordPath()
        var options = RecordingOptions()
        options.chunkSize = 256
        let mine = RecordEnd.beingWritten(process: Int(getpid()))
        _ = try withRecording(to: record.path, options: options) { loop in
            let log = tick(loop, times: 100)
            let end = try Record(contentsOf: record.path).end
            #expect(end == mine)
            #expect(replay(record) { tick($0, times: 200) }.end == .endOfRecord(mine))
            return log
        }
        #expect(try Record(contentsOf: record.path).end == .closed)
        let whole = record.bytes
        for count in [whole.count - 1, whole.count - 256, whole.count - 2000] {
            record.bytes = Array(whole[..<count])
            #expect(try Record(contentsOf: record.path).end == .cut)
            #expect(replay(record) { tick($0, times: 100) }.end == .endOfRecord(.cut))
        }
    }

    @Test func `a record with a missing part is cut`() throws {
        let record = RecordPath()
        var options = RecordingOptions()
        (options.chunkSize, options.partSize) = (256, 8192)
        _ = try withRecording(to: record.path, options: options) { tick($0, times: 2000) }
        #expect(try Record(contentsOf: record.path).end == .closed)
        unlink("\(record.path).3")
        #expect(try Record(contentsOf: record.path).end == .cut)
        #expect(replay(record) { tick($0, times: 2000) }.end == .endOfRecord(.cut))
    }

    @Test func `a replay of a record that is not complete ends with status 65`() async throws {
        await #expect(processExitsWith: .exitCode(65)) { try replayToTheEnd(limit: 4 * 4096, until: nil) }
        await #expect(processExitsWith: .exitCode(0)) { try replayToTheEnd(limit: .max, until: 20) }
        #expect(ReplayEnd.endOfRecord(.processEnded).status == 65 && ReplayEnd.endOfRecord(.closed).status == 0)
    }

    @Test func `a record is whole whenever it is read or copied while it is written`() throws {
        let (record, copy) = (RecordPath(), RecordPath())
        var options = RecordingOptions()
        (options.chunkSize, options.partSize) = (256, 1 << 20)
        let isOver = Locked(false)
        let reads = Locked(0)
        _ = try withRecording(to: record.path, options: options) { loop in
            let reader = LoopThread(name: "reader", in: RunLoop.realWorld) { loop in
                loop.add(
                    Timer(timeInterval: .microseconds(1), repeats: true) { timer in
                        guard !isOver.withLock(\.self) else { return timer.invalidate() }
                        copy.bytes = record.bytes
                        let ends = [record, copy].map { try? Record(contentsOf: $0.path).end }
                        // A copy of the first file lacks the others.
                        let isExpected = ends.allSatisfy { $0 == .beingWritten(process: Int(getpid())) || $0 == .cut }
                        #expect(isExpected && ends[0] != .cut, "\(ends)")
                        reads.withLock { $0 += 1 }
                    }, forMode: .default)
            }
            let log = tick(loop, times: 5000)
            isOver.withLock { $0 = true }
            reader.stop()
            reader.join()
            return log
        }
        #expect(reads.withLock(\.self) > 10)
    }

    @Test func `a replay refuses to end at an event that the record does not have`() throws {
        let record = RecordPath()
        _ = try withRecording(to: record.path) { tick($0, times: 5) }
        let count = UInt64(try Record(contentsOf: record.path).events(ofThread: 0).reduce(0) { count, _ in count + 1 })
        func end(_ position: ReplayOptions.Position) -> Outcome<[String]> {
            replay(record, until: position) { tick($0, times: 5) }
        }
        #expect(end(.init(event: count - 1)).end == .limit)
        for thread in [-1, 1, 7, .max] {
            guard case .failed(RecordError.noThread(thread, threads: [0])) = end(.init(event: 0, ofThread: thread))
            else {
                Issue.record("thread \(thread)")
                continue
            }
        }
        guard case .failed(RecordError.noEvent(_, count: count)) = end(.init(event: count)) else {
            Issue.record("event \(count)")
            return
        }
    }
}
