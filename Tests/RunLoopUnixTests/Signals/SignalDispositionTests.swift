import Glibc
import RunLoopCore
import RunLoopKit
import RunLoopUnix
import TestSupport
import Testing

/// The restoration of dispositions, and the release of the sources' memory.
@Suite("Dispositions", .timeLimit(.minutes(15)))
struct SignalDispositionTests {
    @Test("the former disposition comes back with the end of the last source")
    func restored() async {
        await #expect(processExitsWith: .success) {
            let isGood = onThread {
                signal(SIGUSR1, SIG_IGN)
                let loop = RunLoop.current
                let first = try! SignalSource(signal: .user1) { _ in }
                let second = try! SignalSource(signal: .user1) { _ in }
                guard disposition(of: .user1) == 1 else { return false }
                try! loop.add(first, forMode: .default)
                try! loop.add(second, forMode: ["a", "b"])
                first.invalidate()
                loop.remove(second, forMode: "a")
                guard disposition(of: .user1) > 1 else { return false }
                loop.remove(second, forMode: "b")
                guard disposition(of: .user1) == 1 else { return false }
                try! loop.add(second, forMode: .default)
                guard disposition(of: .user1) > 1 else { return false }
                second.invalidate()
                return disposition(of: .user1) == 1
            }
            precondition(isGood)
        }
    }

    @Test("a handler that invalidates its source and raises the signal ends the process by it")
    func raisedAgain() async {
        await #expect(processExitsWith: .signal(SIGTERM)) {
            onThread {
                let loop = RunLoop.current
                let source = try! SignalSource(signal: .terminate) {
                    $0.invalidate()
                    raise(SIGTERM)
                }
                try! loop.add(source, forMode: .default)
                raise(SIGTERM)
                loop.run(in: .default, until: .distantPast)
            }
        }
    }

    @Test("the end of a loop ends its sources: the disposition comes back and their memory is freed")
    func endOfLoop() async {
        await #expect(processExitsWith: .success) {
            let released = Counter()
            onThread {
                final class Witness {
                    let released: Counter
                    init(_ released: Counter) { self.released = released }
                    deinit { released.add() }
                }
                let witness = Witness(released)
                let loop = RunLoop.current
                try! loop.add(
                    try! SignalSource(signal: .user1) { _ in withExtendedLifetime(witness) {} }, forMode: .default)
                precondition(disposition(of: .user1) > 1)
            }
            precondition(disposition(of: .user1) == 0 && released.value == 1)
        }
    }

    @Test("a source takes part again after its removal; signals unhandled at its removal are dropped")
    func addedAgain() async {
        await #expect(processExitsWith: .success) {
            let counts = onThread {
                var counts: [Int] = []
                let loop = RunLoop.current
                let source = try! SignalSource(signal: .user1) { counts.append($0.count) }
                try! loop.add(source, forMode: .default)
                raise(SIGUSR1)
                loop.remove(source, forMode: .default)
                try! loop.add(source, forMode: .default)
                loop.run(in: .default, until: .distantPast)
                raise(SIGUSR1)
                loop.run(in: .default, until: .distantPast)
                return counts
            }
            precondition(counts == [1], "\(counts)")
        }
    }

    @Test("a handler that other code has installed since is left alone")
    func replaced() async {
        await #expect(processExitsWith: .success) {
            let isGood = onThread {
                let loop = RunLoop.current
                let source = try! SignalSource(signal: .user1) { _ in }
                try! loop.add(source, forMode: .default)
                signal(SIGUSR1, SIG_IGN)
                source.invalidate()
                return disposition(of: .user1) == 1
            }
            precondition(isGood)
        }
    }

    @Test("an ignored signal is still delivered to a source, and is ignored again afterwards")
    func ignore() async {
        await #expect(processExitsWith: .success) {
            let count = onThread {
                var count = 0
                try! Signal.ignore(.pipe)
                raise(SIGPIPE)
                let loop = RunLoop.current
                let source = try! SignalSource(signal: .hangUp) { count += $0.count }
                try! loop.add(source, forMode: .default)
                try! Signal.ignore(.hangUp)
                raise(SIGHUP)
                loop.run(in: .default, until: .distantPast)
                source.invalidate()
                raise(SIGHUP)
                return count
            }
            precondition(count == 1)
        }
    }

    @Test("a child of a fork has the former disposition, and its parent does not receive its signals")
    func fork() async {
        await #expect(processExitsWith: .success) {
            let isGood = onThread {
                var count = 0
                let loop = RunLoop.current
                let source = try! SignalSource(signal: .user1) { count += $0.count }
                try! loop.add(source, forMode: .default)
                let killed = statusOfChild { raise(SIGUSR1) }
                guard killed == SIGUSR1 else { return false }
                let status = statusOfChild {
                    source.invalidate()
                    var count = 0
                    let loop = RunLoop.current
                    let own = try! SignalSource(signal: .user1) { count += $0.count }
                    try! loop.add(own, forMode: .default)
                    raise(SIGUSR1)
                    loop.run(in: .default, until: .distantPast)
                    own.invalidate()
                    precondition(count == 1 && disposition(of: .user1) == 0)
                }
                guard status == 0 else { return false }
                loop.run(in: .default, until: .distantPast)
                guard count == 0 else { return false }
                raise(SIGUSR1)
                loop.run(in: .default, until: .distantPast)
                return count == 1
            }
            precondition(isGood)
        }
    }

    @Test("a child of a fork without fork handlers has the former disposition too")
    func bareFork() async {
        await #expect(processExitsWith: .success) {
            let isGood = onThread {
                var count = 0
                let loop = RunLoop.current
                let source = try! SignalSource(signal: .user1) { count += $0.count }
                try! loop.add(source, forMode: .default)
                // `_Fork` calls no fork handlers, so that the signal handler itself has to find out.
                let killed = statusOfChild(by: "_Fork") { raise(SIGUSR1) }
                loop.run(in: .default, until: .distantPast)
                guard killed == SIGUSR1, count == 0, disposition(of: .user1) > 1 else { return false }
                raise(SIGUSR1)
                loop.run(in: .default, until: .distantPast)
                return count == 1
            }
            precondition(isGood)
        }
    }

    @Test("adding a source on another thread than its loop's is a mistake")
    func elsewhere() async {
        await #expect(processExitsWith: .failure) {
            let smuggled = onThread { Smuggled(RunLoop.current) }
            try smuggled.value.add(try SignalSource(signal: .user1) { _ in }, forMode: .default)
        }
    }
}
