import CShims
import Glibc
import RunLoopCore
import RunLoopKit
import TestSupport
import Testing

@testable import RunLoopUnix

@Suite("Texts for standard error", .timeLimit(.minutes(15)))
struct StandardErrorTests {
    /// A pipe, and its writer.
    private final class Target {
        private var ends: [Int32] = [-1, -1]
        let writer: StandardError

        init(capacity: Int = 1 << 20) {
            precondition(rlk_pipe(&ends) == 0)
            writer = StandardError(descriptor: ends[1], capacity: capacity)
        }

        deinit {
            closeReader()
            // The writer's thread may still use the descriptor, whose number would become another's.
            #expect(eventually { writer.isIdle })
            close(ends[1])
        }

        func closeReader() {
            if ends[0] >= 0 { close(ends[0]) }
            ends[0] = -1
        }

        func read(_ count: Int) -> String {
            var bytes = [UInt8](repeating: 0, count: count)
            var done = 0
            while done < count {
                let more = Glibc.read(ends[0], &bytes[done], count - done)
                precondition(more > 0)
                done += more
            }
            return String(decoding: bytes, as: UTF8.self)
        }

        var isEmpty: Bool {
            var request = pollfd(fd: ends[0], events: Int16(POLLIN), revents: 0)
            return poll(&request, 1, 0) == 0
        }
    }

    @Test("what there is room for is written before the call returns")
    func atOnce() {
        let target = Target()
        target.writer.write("one\n")
        target.writer.write("two\n")
        #expect(!target.isEmpty && target.read(8) == "one\ntwo\n")
    }

    @Test("output to a reader that does not read delays no caller, and arrives in order later")
    func fullPipe() {
        let target = Target()
        let texts = (0..<9).map { String(repeating: "\($0)", count: 30_001) }
        for text in texts { target.writer.write(text) }
        #expect(target.read(9 * 30_001) == texts.joined())
        #expect(eventually { target.isEmpty })
        target.writer.write("again\n")
        #expect(target.read(6) == "again\n")
    }

    @Test("waiting output is bounded, and omitted lines are counted")
    func capacity() {
        let target = Target(capacity: 100_000)
        let text = String(repeating: "x", count: 99_999)
        for _ in 0..<5 { target.writer.write(text) }
        // The thread looks at times of its own; each text is written or counted.
        var written = 0
        var dropped = 0
        while written < (5 - dropped) * 99_999 {
            let byte = target.read(1)
            if byte == "x" { written += 1 }
            guard byte == "(" else { continue }
            var words = ""
            while !words.hasSuffix(")\n") { words += target.read(1) }
            dropped += Int(words.prefix { $0 != " " })!
            #expect(words.hasSuffix(" lines left out)\n"))
        }
        #expect(dropped > 0 && written == (5 - dropped) * 99_999)
    }

    @Test("each line is written or counted")
    func lines() {
        let target = Target(capacity: 200_000)
        for _ in 0..<3 { target.writer.write(String(repeating: "x", count: 250_000) + "\n") }
        for _ in 0..<7 { target.writer.write("two\nlines\n") }
        var (lines, leftOut) = (0, 0)
        while lines + leftOut < 3 + 7 * 2 {
            var line = ""
            repeat { line += target.read(1) } while !line.hasSuffix("\n")
            if line.hasSuffix(" lines left out)\n") {
                leftOut += Int(line.dropFirst().prefix { $0 != " " })!
            } else {
                lines += 1
            }
        }
        #expect(leftOut > 0)
    }

    @Test("a flush waits for a reader, and no longer than it may")
    func flush() {
        let target = Target()
        target.writer.write(String(repeating: "x", count: 300_000))
        target.writer.flush(within: .milliseconds(20))
        #expect(!target.writer.isIdle)
        _ = target.read(300_000)
        target.writer.flush(within: .seconds(600))
        #expect(target.writer.isIdle)
    }

    @Test("a reader that has gone is an end, and not a signal")
    func broken() {
        let target = Target()
        target.writer.write(String(repeating: "x", count: 200_000))
        target.closeReader()
        target.writer.write("x")
        target.writer.write("y")
    }

    @Test("a signal that dumps does not block its loop while standard error is not read")
    func dump() async {
        await #expect(processExitsWith: .success) {
            onThread {
                var ends: [Int32] = [-1, -1]
                precondition(rlk_pipe(&ends) == 0 && dup2(ends[1], STDERR_FILENO) == STDERR_FILENO)
                let zeros = [UInt8](repeating: 0, count: 65_536)
                precondition(write(ends[1], zeros, zeros.count) == zeros.count)
                let loop = RunLoop.current
                try! loop.dump(on: .user1)
                raise(SIGUSR1)
                loop.run(in: .default, until: .distantPast)
                loop.perform(afterDelay: .milliseconds(1)) {}
                precondition(loop.run(in: .default) == .finished)
                var text = ""
                while !text.contains("run loop at ") {
                    var bytes = [UInt8](repeating: 0, count: 65_536)
                    let count = read(ends[0], &bytes, bytes.count)
                    text += String(decoding: bytes.prefix(count), as: UTF8.self)
                }
            }
        }
    }

    @Test("a report of a stall that does not return blocks no loop")
    func stallReport() {
        let isReporting = Flag()
        let mayReturn = Flag()
        onThread {
            let loop = RunLoop.current
            let monitor = StallMonitor(loop, threshold: .milliseconds(1)) { _ in
                isReporting.set()
                _ = eventually { mayReturn.isSet }
            }
            loop.perform { precondition(eventually { isReporting.isSet }) }
            loop.perform(afterDelay: .milliseconds(1)) {}
            precondition(loop.run(in: .default) == .finished)
            withExtendedLifetime(monitor) {}
        }
        #expect(!mayReturn.isSet)
        mayReturn.set()
    }
}
