import Glibc
import RunLoopKit
import RunLoopUnix
import TestSupport
import Testing

@Suite("A start without a descriptor or a thread", .timeLimit(.minutes(10)))
struct StartTests {
    /// The starts that do not throw.
    enum Start: String, CaseIterable, Codable {
        case current, mainRemote, thread, pool, monitor, wallTimer

        /// A number of descriptors that is too small for each loop.
        var tooFew: ClosedRange<Int32> { self == .mainRemote ? 0...0 : 0...4 }

        func make() {
            switch self {
            case .current: _ = RunLoop.current
            case .mainRemote: RunLoop.Remote.main.wakeUp()
            case .thread: withLoopThread { _ in }
            case .pool:
                let isOver = Flag()
                DeliveryQueue.background.asyncAfter(.zero) { isOver.set() }
                _ = eventually { isOver.isSet }
            case .monitor: withExtendedLifetime(StallMonitor(.current, threshold: .seconds(9)) { _ in }) {}
            case .wallTimer: RunLoop.current.add(WallTimer(at: RunLoop.current.wallTime) { _ in }, forMode: .default)
            }
        }
    }

    @Test(
        "a start that throws nothing works, or ends the process with a sentence and the status 71",
        arguments: Start.allCases)
    func descriptors(_ start: Start) async throws {
        for count in start.tooFew {
            let result = await #expect(processExitsWith: .exitCode(71), observing: [\.standardErrorContent]) {
                [start, count = count as Int32] in
                leaveDescriptors(count)
                start.make()
            }
            #expect(says("RunLoopKit: cannot make a descriptor", result), "with \(count) descriptors")
            #expect(says("(errno 24)", result), "with \(count) descriptors")
        }
        await #expect(processExitsWith: .success) { [start] in
            leaveDescriptors(16)
            start.make()
            // LeakSanitizer does not find the surviving loop's memory for the monitor's weak reference.
            if start == .monitor { _exit(0) }
        }
    }

    @Test(
        "a thread that cannot start ends the process with a sentence and the status 71",
        arguments: [Start.thread, .pool, .monitor])
    func threads(_ start: Start) async {
        let result = await #expect(processExitsWith: .exitCode(71), observing: [\.standardErrorContent]) { [start] in
            leaveNoThread()
            start.make()
        }
        #expect(says("RunLoopKit: cannot start the thread", result))
    }

    @Test("a group throws the refusal of a thread, and ends the threads that it has started")
    func group() async {
        await #expect(processExitsWith: .success) {
            @Sendable func refusal(_ count: Int) -> RunLoop.StartError? {
                do {
                    let group = try LoopGroup(count: count)
                    group.stop()
                    group.join()
                    return nil
                } catch {
                    return error as? RunLoop.StartError
                }
            }
            leaveDescriptors(8)
            for _ in 0..<4 { precondition(onThread { refusal(2) }?.errno == EMFILE) }
            precondition(onThread { refusal(1) } == nil)
            leaveNoThread()
            precondition(refusal(1)?.operation == "start the thread \"loop 0\"")
        }
    }

    @Test("a loop for a task throws the refusal of a thread")
    func task() async {
        await #expect(processExitsWith: .success) {
            leaveDescriptors(0)
            // Without descriptors LeakSanitizer could not look for leaks, and would end the process with another status.
            do { try await withLoop { _ in } } catch is RunLoop.StartError { _exit(0) }
        }
    }

    @Test("without a thread for the resolver a look-up fails, and a later one is made")
    func resolver() async {
        await #expect(processExitsWith: .success) {
            _ = RunLoop.Remote.main
            PlainThread {
                let loop = RunLoop.current
                var outcomes: [String] = []
                func find() {
                    HostResolver.resolve("localhost", port: 80, on: loop) { result in
                        switch result {
                        case .success: outcomes.append("found")
                        case .failure(let failure): outcomes.append("\(failure.kind)")
                        }
                    }
                    _ = loop.run(in: .default)
                }
                var limit = rlimit()
                getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
                leaveDescriptors(4)
                find()
                setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
                find()
                precondition(outcomes == ["unavailable", "found"], "\(outcomes)")
            }.join()
        }
    }

    @Test("a pool without room for another thread delivers with those that it has")
    func pool() async {
        await #expect(processExitsWith: .success) {
            let pool = LoopThreadPool(maximumThreads: 4)
            let calls = Counter()
            DeliveryQueue.pool(pool).asyncAfter(.zero) { calls.add() }
            _ = eventually { calls.value == 1 }
            leaveNoThread()
            for _ in 0..<3 { DeliveryQueue.pool(pool).asyncAfter(.zero) { calls.add() } }
            _ = eventually { calls.value == 4 }
            pool.stop()
            pool.join()
        }
    }
}
