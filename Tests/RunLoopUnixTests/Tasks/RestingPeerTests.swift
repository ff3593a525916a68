import Glibc
import RunLoopKit
import RunLoopUnix
import TestSupport
import Testing

/// Tests in processes of their own, whose memory no other test uses.
@Suite("Tasks and peers that rest", .timeLimit(.minutes(15)))
struct RestingPeerTests {
    /// The number of bytes; `make stress` moves a gigabyte.
    private static let total = amount(of: "MOVED_MEBIBYTES", usually: 64) << 20

    /// The block that is sent repeatedly; its length is no power of two, so that a lost piece is noticed.
    private static let block = randomBytes(1_000_003, seed: 1)

    /// Returns `true` if the bytes are the ones that follow `position` others.
    private static func isRight(_ bytes: UnsafeRawBufferPointer, at position: Int) -> Bool {
        block.withUnsafeBytes { block in
            var checked = 0
            while checked < bytes.count {
                let start = (position + checked) % block.count
                let count = min(bytes.count - checked, block.count - start)
                guard memcmp(bytes.baseAddress! + checked, block.baseAddress! + start, count) == 0 else { return false }
                checked += count
            }
            return true
        }
    }

    @Test("while a peer reads slowly, a task's output to it waits with the task, below the marks")
    func slowReader() async {
        await #expect(processExitsWith: .success) { try await withLoop(Self.writeToSlowReader) }
    }

    @Sendable
    private static func writeToSlowReader(on loop: RunLoop) async throws {
        var limits = Connection.Limits()
        (limits.highWatermark, limits.lowWatermark) = (8 << 20, 1 << 20)
        let sockets = makeSockets()
        let connection = Connection(adopting: sockets.0, on: loop, limits: limits)
        let faults = Log<String>()
        let peer = PlainThread {
            let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 100_000, alignment: 1)
            var position = 0
            while case let count = recv(sockets.1, room.baseAddress, room.count, 0), count > 0 {
                if !isRight(UnsafeRawBufferPointer(rebasing: room[..<count]), at: position) { faults("at \(position)") }
                if position >> 22 != (position + count) >> 22 { usleep(2000) }
                position += count
            }
            if position != total { faults("\(position) bytes have come") }
            room.deallocate()
            close(sockets.1)
        }
        let memory = Memory()
        loop.add(Observer(activities: .beforeWaiting) { _, _ in memory.look() }, forMode: .common)
        var most = 0
        try await connection.withStream { stream in
            var position = 0
            while position < total {
                let piece = block[(position % block.count)...].prefix(total - position)
                try await stream.write(Array(piece))
                position += piece.count
                most = max(most, stream.pendingOutput)
            }
        }
        peer.join()
        #expect(faults.entries.isEmpty)
        #expect(most > limits.lowWatermark, "the peer was never slow")
        #expect(most <= limits.highWatermark)
        memory.check(atMost: 2 * limits.highWatermark)
    }

    @Test("while a task rests, a peer's output to it waits with the peer")
    func slowTask() async {
        await #expect(processExitsWith: .success) { try await withLoop(Self.readSlowly) }
    }

    @Sendable
    private static func readSlowly(on loop: RunLoop) async throws {
        let sockets = makeSockets()
        let connection = Connection(adopting: sockets.0, on: loop)
        let peer = PlainThread {
            block.withUnsafeBytes { block in
                var position = 0
                while position < total {
                    let start = position % block.count
                    let count = send(
                        sockets.1, block.baseAddress! + start, min(block.count - start, total - position),
                        Int32(MSG_NOSIGNAL))
                    precondition(count > 0, "errno \(errno)")
                    position += count
                }
            }
            close(sockets.1)
        }
        let memory = Memory()
        var most = 0
        loop.add(
            Observer(activities: .beforeWaiting) { _, _ in
                memory.look()
                most = max(most, connection.unusedInput)
            }, forMode: .common)
        var position = 0
        while let bytes = try await connection.read(atMost: 50_000) {
            let isSame = bytes.withUnsafeBytes { isRight($0, at: position) }
            #expect(isSame, "at \(position)")
            if position >> 22 != (position + bytes.count) >> 22 { try await loop.clock.sleep(for: .milliseconds(2)) }
            position += bytes.count
        }
        #expect(position == total)
        connection.close()
        peer.join()
        #expect(most <= 64 * 1024)
        memory.check(atMost: 2 * 64 * 1024)
    }

    /// The growth of the process's memory.
    private final class Memory {
        private let before: Int
        private var most = 0

        init() {
            giveLargeMemoryBackAtOnce()
            before = residentBytes()
        }

        func look() {
            most = max(most, residentBytes())
        }

        func check(atMost limit: Int) {
            guard !isSanitized else { return }
            #expect(most > 0, "nobody has looked")
            // Some mebibytes for the test's own memory.
            #expect(most - before <= limit + 4 << 20)
        }
    }
}
