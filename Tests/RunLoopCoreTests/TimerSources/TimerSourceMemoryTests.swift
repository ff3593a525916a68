import Glibc
@_spi(Ports) import RunLoopCore
import RunLoopKit
import TestSupport
import Testing

/// Three hundred thousand sources come and go in a process whose memory no other test uses.
@Suite(
    "The memory of timer sources", .timeLimit(.minutes(15)),
    .disabled(if: isSanitized, "a sanitizer keeps what is freed"))
struct TimerSourceMemoryTests {
    @Test("100,000 sources are scheduled, activated, and cancelled or just dropped, and their memory comes back")
    func memoryComesBack() async {
        await #expect(processExitsWith: .success) { checkRounds() }
    }
}

private func checkRounds() {
    let loop = RunLoop.current
    let before = residentBytes()
    let released = Counter()
    /// - Returns: the peak of the resident memory in the round, and the memory after it.
    func round(cancels: Bool) -> (peak: Int, after: Int) {
        func work() -> Int {
            let token = Token { released.add() }
            let begin = loop.now + .seconds(1000)
            let sources = (0..<100_000).map { number in
                let source = TimerSource(queue: .loop(loop.remote))
                source.setEventHandler { _ in token.touch() }
                source.schedule(deadline: begin + .milliseconds(number), repeating: .seconds(1))
                source.activate()
                return source
            }
            let peak = residentBytes()
            if cancels { for source in sources { source.cancel() } }
            return peak
        }
        let peak = work()
        // One look of the loop, in which it sees that nothing is left.
        precondition(loop.run(in: .default) == .finished, "a source was left in the loop")
        loop.checkInvariants()
        return (peak, residentBytes())
    }
    // Each kind twice. The first round does not count: the allocator learns from it that large arrays come and go, and
    // maps them no more.
    let rounds = [true, false, true, false].map { round(cancels: $0) }
    let used = rounds[1].peak - before
    precondition(released.value == rounds.count, "a source was not released")
    precondition(used > 10_000_000, "100,000 sources cannot take \(used) bytes")
    for (earlier, later) in [(1, 2), (2, 3)] {
        let growth = rounds[later].after - rounds[earlier].after
        precondition(growth * 20 < used, "a round left \(growth) bytes more, of \(used)")
        precondition((rounds[later].peak - rounds[earlier].peak) * 20 < used, "a round took more: \(rounds)")
    }
    // The memory that the loop and the allocator keep for reuse is a small part.
    precondition(rounds[3].after - before < used / 4, "\(rounds[3].after - before) bytes of \(used) are kept")
}
