import Glibc
import RunLoopKit
import RunLoopUnix
import TestSupport
import Testing

/// Returns `true` if this process has children, running or not.
private func hasChildren() -> Bool {
    var info = siginfo_t()
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0
}

@Suite("Children of tasks", .timeLimit(.minutes(5)))
struct ChildTaskTests {
    @Test("a task receives a child's exit status, also after its end, and the child is reaped")
    func exit() async {
        await onLoop { loop in
            let child = try shell("exit 3", output: .null)
            #expect(try await child.exit() == .exited(3))
            #expect(!isChild(child.processIdentifier))
            #expect(try await child.exit() == .exited(3))
            let killed = try shell("kill -9 $$", output: .null)
            #expect(eventually { isZombie(killed.processIdentifier) })
            #expect(try await killed.exit() == .signalled(.kill, coreDumped: false))
        }
    }

    @Test("each of the tasks that wait for a child receives its exit status")
    func several() async {
        await onLoop { loop in
            let child = try shell("read line; exit 4", input: .pipe, output: .null)
            let tasks = (0..<3).map { _ in loop.task { try await child.exit() } }
            await Task.yield()
            child.standardInput!.close()
            for task in tasks { #expect(try await task.value == .exited(4)) }
        }
    }

    @Test("a cancelled wait leaves the child alone, and a later wait receives its exit status")
    func cancelled() async {
        await onLoop { loop in
            let child = try shell("read line; exit 5", input: .pipe, output: .null)
            let task = loop.task { try await child.exit() }
            await Task.yield()
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            #expect(isChild(child.processIdentifier) && !isZombie(child.processIdentifier))
            #expect(child.status == nil)
            child.standardInput!.close()
            #expect(try await child.exit() == .exited(5))
        }
    }

    @Test("the end of the loop ends the wait, and the child continues")
    func loopEnds() async throws {
        let (numbers, number) = AsyncStream.makeStream(of: Int32.self)
        let results = await endsOfLoop { _ in
            let child = try shell("exec sleep 1000", output: .null)
            number.yield(child.processIdentifier)
            _ = try await child.exit()
        }
        for result in results {
            #expect(throws: RunLoop.WaitError.loopEnded(loop: "short")) { try result.get() }
        }
        number.finish()
        for await pid in numbers {
            #expect(kill(pid, SIGKILL) == 0)
            #expect(eventually { !isChild(pid) })
        }
    }

    /// The number of waits; `make stress` cancels ten times as many.
    private static let cancelledWaits = amount(of: "CANCELLED_WAITS", usually: 1000)

    @Test("thousands of waits that are cancelled leave no descriptor, no zombie and no task")
    func nothingLeft() async {
        // In a process of its own, because it counts the resources of the process.
        await #expect(processExitsWith: .success) {
            try await withLoop { loop in
                var random = SeededGenerator(seed: 1)
                // Dispatch opens descriptors of its own at any time.
                func files() -> Int {
                    openFiles().count { !["[timerfd]", "[eventfd]", "[eventpoll]"].contains($0.dropFirst(11)) }
                }
                let filesBefore = files()
                for turn in 0..<Self.cancelledWaits {
                    let child = try ChildProcess.spawn(
                        .path("/bin/true"), standardInput: .pipe, standardOutput: .pipe)
                    let task = loop.task { try await child.exit() }
                    for _ in 0..<Int.random(in: 0...4, using: &random) { await Task.yield() }
                    if turn % 3 == 0 { try await loop.clock.sleep(for: .microseconds(turn % 1000)) }
                    task.cancel()
                    switch await task.result {
                    case .success(let status): precondition(status == .exited(0))
                    case .failure(let error): precondition(error is CancellationError)
                    }
                }
                // A thread reaps a child that was released while it ran.
                let limit = loop.now + .seconds(60)
                while (files() != filesBefore || hasChildren()) && loop.now < limit {
                    try await loop.clock.sleep(for: .milliseconds(1))
                }
                precondition(files() == filesBefore && !hasChildren(), "\(openFiles())")
                precondition(!"\(loop.dump())".contains("child"), "\(loop.dump())")
            }
        }
    }

    @Test("the lines of a child's output, and then how it has ended")
    func output() async {
        await onLoop { loop in
            let child = try shell("printf 'one\\r\\n\\ntwo\\nlast'; exit 6")
            let output = Connection(reading: child.standardOutput, writing: nil, on: loop)
            var lines: [String] = []
            for try await line in output.lines() { lines.append(line) }
            #expect(lines == ["one", "", "two", "last"])
            #expect(try await child.exit() == .exited(6))
            #expect(!output.isOpen && output.fileDescriptor >= 0)
        }
    }

    @Test("a connection that is read to its end closes, however it is read, and the loop has nothing left")
    func closesAtEnd() async {
        await onLoop { loop in
            let readers: [nonisolated(nonsending) (Connection) async throws -> Void] = [
                { for try await _ in $0.lines() {} },
                { while try await $0.read() != nil {} },
                { while try await $0.receive({ $0.count }) {} },
                { while try await $0.receive({ _ in 0 }) {} },
            ]
            for read in readers {
                let child = try shell("printf 'one\ntwo'")
                let output = Connection(reading: child.standardOutput, writing: nil, on: loop)
                try await read(output)
                #expect(!output.isOpen)
                #expect(try await child.exit().isSuccess)
            }
            #expect(!"\(loop.dump())".contains("connection"), "\(loop.dump())")
        }
    }
}
