import Glibc
@_spi(Ports) import RunLoopCore
import RunLoopKit
import RunLoopRecording
import RunLoopUnix
import TestSupport
import Testing

/// Runs loops that post to one another as fast as they can, in an order that no run repeats by itself.
private func exchange(_ loop: RunLoop, loops: Int, posts: Int) throws -> [[String]] {
    let logs = (0...loops).map { _ in Locked<[String]>([]) }
    let main = loop.remote
    let left = Locked(loops * posts)
    loop.add(CustomSource(), forMode: .common)
    let threads = (0..<loops).map { number in
        LoopThread(name: "loop \(number)") { $0.add(CustomSource(), forMode: .common) }
    }
    for (number, thread) in threads.enumerated() {
        thread.remote.perform { loop in
            let next = threads[(number + 1) % loops].remote
            var count = 0
            loop.add(
                Timer(timeInterval: .microseconds(50), repeats: true) { timer in
                    count += 1
                    let text = "\(number).\(count) at \(loop.now)"
                    next.perform { loop in
                        logs[(number + 1) % loops].withLock { $0.append("\(text), here at \(loop.now)") }
                    }
                    main.perform { loop in
                        logs[loops].withLock { $0.append(text) }
                        let isLast = left.withLock { left in
                            left -= 1
                            return left == 0
                        }
                        if isLast { loop.stop() }
                    }
                    if count == posts { timer.invalidate() }
                }, forMode: .common)
        }
    }
    loop.run(in: .default)
    for thread in threads { thread.stop() }
    for thread in threads { thread.join() }
    return logs.map { $0.withLock(\.self) }
}

@Suite struct SeveralLoopsTests {
    @Test(arguments: [1, 2, 5]) func `the order of mail between loops is repeated`(loops: Int) throws {
        let record = RecordPath()
        let log = try withRecording(to: record.path) { try exchange($0, loops: loops, posts: 200) }
        #expect(log.last?.count == loops * 200)
        let outcome = replay(record) { try exchange($0, loops: loops, posts: 200) }
        #expect(outcome.value == log)
        if outcome.value == nil { Issue.record("\(outcome)") }
    }

    @Test func `tasks on several loops are repeated`() throws {
        @Sendable func run(_ loop: RunLoop) throws -> [String] {
            let log = Locked<[String]>([])
            let threads = (0..<3).map { number in
                LoopThread(name: "loop \(number)") { $0.add(CustomSource(), forMode: .common) }
            }
            let source = CustomSource()
            loop.add(source, forMode: .common)
            let home = loop.remote
            loop.task {
                for round in 0..<50 {
                    for (number, thread) in threads.enumerated() {
                        let time = try await thread.remote.run { $0.now }
                        try await loop.clock.sleep(for: .microseconds(20 * number))
                        log.withLock { $0.append("\(round).\(number): \(time) at \(home.now)") }
                    }
                }
                home.stop()
            }
            loop.run(in: .default)
            for thread in threads { thread.stop() }
            for thread in threads { thread.join() }
            return log.withLock(\.self)
        }
        let record = RecordPath()
        let log = try withRecording(to: record.path, run)
        #expect(log.count == 150)
        let outcome = replay(record, run)
        #expect(outcome.value == log)
        if outcome.value == nil { Issue.record("\(outcome)") }
    }

    @Test func `a replay gives the error to the same one of two loops that wait for each other`() throws {
        @Sendable func run(_ loop: RunLoop) throws -> [[String]] {
            let logs = (0..<2).map { _ in Locked<[String]>([]) }
            let threads = ["a", "b"].map { name in
                LoopThread(name: name) { $0.add(CustomSource(), forMode: .common) }
            }
            loop.add(CustomSource(), forMode: .common)
            let home = loop.remote
            let left = Locked(2)
            for (number, thread) in threads.enumerated() {
                let other = threads[1 - number].remote
                thread.remote.perform { loop in
                    @Sendable func next(_ count: Int, in loop: RunLoop) {
                        let result = Result { try other.performAndWait { "ran at \($0.now)" } }
                        logs[number].withLock { $0.append("\(count): \(result)") }
                        if count < 300 { return loop.perform { next(count + 1, in: loop) } }
                        home.perform { loop in
                            let isLast = left.withLock { left in
                                left -= 1
                                return left == 0
                            }
                            if isLast { loop.stop() }
                        }
                    }
                    next(1, in: loop)
                }
            }
            loop.run(in: .default)
            for thread in threads { thread.stop() }
            for thread in threads { thread.join() }
            return logs.map { $0.withLock(\.self) }
        }
        let record = RecordPath()
        let log = try withRecording(to: record.path, run)
        #expect(log.map(\.count) == [300, 300])
        let outcome = replay(record, run)
        #expect(outcome.value == log)
        if outcome.value == nil { Issue.record("\(outcome)") }
    }

    @Test func `a group of loops serves connections`() throws {
        @Sendable func serve(_ loop: RunLoop, whenReady: (Endpoint) -> Void) throws -> [[String]] {
            let logs = (0..<3).map { _ in Locked<[String]>([]) }
            let home = loop.remote
            let left = Locked(30)
            loop.add(CustomSource(), forMode: .common)
            let group = try LoopGroup(count: 3)
            let address = try group.listen(on: Endpoint("127.0.0.1", port: 0)) { loop, descriptor, peer in
                let number = Int(loop.name!.suffix(1))!
                let connection = Connection(adopting: descriptor, on: loop) { connection, bytes in
                    logs[number].withLock { $0.append("\(bytes.count) bytes at \(loop.now)") }
                    connection.write(bytes)
                    return bytes.count
                }
                // Counted on one thread: the order in which threads take a lock is not recorded.
                connection.closeHandler = { _, reason in
                    home.perform { loop in
                        left.withLock { $0 -= 1 }
                        if left.withLock({ $0 == 0 }) { loop.stop() }
                    }
                }
                try? connection.start()
            }
            whenReady(address)
            loop.run(in: .default)
            group.stop()
            group.join()
            return logs.map { $0.withLock(\.self) }
        }
        let record = RecordPath()
        var visitor: LoopThread?
        let log = try withRecording(to: record.path) { loop in
            try serve(loop) { visitor = visit($0, connections: 30, pieces: 2, size: 500) }
        }
        visitor?.join()
        let outcome = replay(record) { try serve($0) { _ in } }
        #expect(outcome.value == log)
        if outcome.value == nil { Issue.record("\(outcome)") }
    }
}
