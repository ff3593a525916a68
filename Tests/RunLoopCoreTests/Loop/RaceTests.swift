import Glibc
@_spi(Ports) import RunLoopCore
import RunLoopKit
import TestSupport
import Testing

/// Races in which a wake-up could be lost once in thousands of runs.
@Suite("Races with a loop that is about to run, or to sleep", .timeLimit(.minutes(15)))
struct RaceTests {
    private static let rounds = 10_000

    /// Runs a loop once a round, on a thread of its own, while `ask` is called at about the same time.
    private func race(
        _ ask: (RunLoop.Remote, Int) -> Void, run: @escaping @Sendable (RunLoop, Int) -> Bool
    ) -> (rounds: Int, good: Int) {
        let remote = Locked<RunLoop.Remote?>(nil)
        let begun = Counter()
        let ended = Counter()
        let good = Counter()
        let thread = PlainThread {
            let loop = RunLoop.current
            loop.add(CustomSource(), forMode: .default)
            remote.withLock { $0 = loop.remote }
            for round in 1...Self.rounds {
                while begun.value < round { sched_yield() }
                // A different distance each time: the asking thread meets every point of the run's beginning.
                for _ in 0..<(round * 7) % 61 { _ = begun.value }
                if run(loop, round) { good.add() }
                ended.add()
            }
        }
        while remote.withLock({ $0 == nil }) { sched_yield() }
        let found = remote.withLock { $0! }
        for round in 1...Self.rounds {
            begun.add()
            for _ in 0..<(round * 13) % 97 { _ = ended.value }
            ask(found, round)
            guard eventually("round \(round) ends", { ended.value == round }) else {
                // Lets the thread end, so that only the failure is left behind.
                while ended.value < Self.rounds {
                    begun.add()
                    found.stop()
                    sched_yield()
                }
                break
            }
        }
        thread.join()
        return (ended.value, good.value)
    }

    @Test("ten thousand stops against the start of a run, and none is lost")
    func stops() {
        let result = race { remote, _ in
            remote.stop()
        } run: { loop, _ in
            loop.run(in: .default) == .stopped
        }
        #expect(result == (Self.rounds, Self.rounds))
    }

    @Test("ten thousand posts against the start of a run, and none is lost")
    func posts() {
        let performed = Counter()
        let result = race { remote, _ in
            remote.perform { loop in
                performed.add()
                loop.stop()
            }
        } run: { loop, round in
            loop.run(in: .default) == .stopped && performed.value == round
        }
        #expect(result == (Self.rounds, Self.rounds))
    }

    @Test("ten thousand signals against the start of a run, and none is lost")
    func signals() {
        let handle = Locked<CustomSource.Remote?>(nil)
        let served = Counter()
        let result = race { _, _ in
            while handle.withLock({ $0 == nil }) { sched_yield() }
            handle.withLock { $0! }.signal()
        } run: { loop, round in
            if round == 1 {
                let source = CustomSource { _ in served.add() }
                loop.add(source, forMode: .default)
                handle.withLock { $0 = source.remote }
            }
            return loop.run(in: .default, returnAfterSourceHandled: true) == .handledSource && served.value == round
        }
        #expect(result == (Self.rounds, Self.rounds))
    }

    @Test("ten thousand posts to a loop that falls asleep again and again, and none is lost")
    func postsToSleeper() {
        let performed = Counter()
        withLoopThread { thread in
            for round in 1...Self.rounds {
                #expect(thread.remote.perform { _ in performed.add() })
                guard eventually("block \(round) runs", { performed.value == round }) else { return }
            }
        }
        #expect(performed.value == Self.rounds)
    }

    @Test("posts race with the end of a loop: each is run, refused, or released unrun")
    func postsAgainstEnd() {
        for _ in 0..<300 {
            let accepted = Counter()
            let refused = Counter()
            let ran = Counter()
            let released = Counter()
            let thread = LoopThread { $0.add(CustomSource(), forMode: .default) }
            let senders = (0..<2).map { _ in
                PlainThread {
                    for _ in 0..<20 {
                        let token = Token { released.add() }
                        let isAccepted = thread.remote.perform { _ in
                            token.touch()
                            ran.add()
                        }
                        if isAccepted { accepted.add() } else { refused.add() }
                    }
                }
            }
            sched_yield()
            thread.stop()
            thread.join()
            for sender in senders { sender.join() }
            #expect(accepted.value + refused.value == 40)
            #expect(ran.value <= accepted.value)
            #expect(released.value == 40)
        }
    }
}
