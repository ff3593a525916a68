import Glibc
import RunLoopKit
import RunLoopTLS
import TLSTestSupport
import TestSupport
import Testing

@testable import RunLoopUnix

/// Random conversations, many at a time, whose peers cut, reset, drip, rest and lie. `make chaos` makes them for ten
/// minutes under AddressSanitizer; CHAOS_SEED repeats the conversations of one seed.
@Suite("Chaos")
struct ChaosTests {
    /// In a process of its own: all of its descriptors and threads are counted.
    @Test("regardless of peers' actions, bytes stay in order, each connection closes once, and nothing is left over")
    func storms() async {
        await #expect(processExitsWith: .success) {
            let clock = ContinuousClock()
            let end = clock.now + .seconds(amount(of: "CHAOS_SECONDS", usually: 1))
            let first = getenv("CHAOS_SEED").flatMap { UInt64(String(cString: $0)) }
            var storms = 0
            // Some objects are made once and stay.
            _ = Storm(seed: 0, conversations: Plan.Way.allCases.count, endsEarly: false).blow()
            repeat {
                let seed = first ?? UInt64.random(in: 0...UInt64(UInt32.max))
                alarm(600)
                let (descriptors, threads) = (openFiles().sorted(), directoryEntries("/proc/self/task").count)
                let failures = Storm(seed: seed, conversations: 60, endsEarly: storms % 4 == 3).blow()
                let isQuiet =
                    eventually { directoryEntries("/proc/self/task").count <= threads }
                    && openFiles().sorted() == descriptors
                #expect(isQuiet, "seed \(seed): \(openFiles()) were \(descriptors)")
                #expect(failures.isEmpty, "seed \(seed): \(failures.joined(separator: "; "))")
                storms += 1
            } while clock.now < end
            print("\(storms) storms")
        }
    }
}

/// Conversations of one seed, some at a time.
private struct Storm {
    let plans: [Plan]
    let seed: UInt64
    /// `true` if the program's thread ends in the middle.
    let endsEarly: Bool

    private static let peersAtATime = 8

    init(seed: UInt64, conversations: Int, endsEarly: Bool) {
        var random = SeededGenerator(seed: seed)
        plans = (0..<conversations).map { Plan($0, &random) }
        self.seed = seed
        self.endsEarly = endsEarly
    }

    /// - Returns: the failures.
    func blow() -> [String] {
        let (failures, isOver) = (Log<String>(), Flag())
        let (program, peers) = onThread { Smuggled(run(failures, isOver)) }.value
        isOver.set()
        for peer in peers { peer.join() }
        program.checkEnds()
        return failures.entries
    }

    /// Starts the program's thread.
    private func run(_ failures: Log<String>, _ isOver: Flag) -> (Program, [PlainThread]) {
        let loop = RunLoop.current
        let contexts = try! Contexts()
        let program = try! Program(plans, seed: seed &+ 1, contexts: contexts, failures: failures, on: loop)
        let (onLoop, remote) = (Smuggled(program), loop.remote)
        let meeting = Meeting(
            server: contexts.server, client: contexts.client, addresses: program.addresses,
            give: { plan, side in remote.perform { _ in onLoop.value.take(plan, side) } },
            call: { plan, address in remote.perform { _ in onLoop.value.connect(plan, to: address) } },
            failures: failures, isOver: isOver)
        let (next, finished) = (Counter(), Counter())
        let peers = (0..<Self.peersAtATime).map { _ in
            PlainThread { [plans] in
                blockPipeSignal()
                while case let number = next.add() - 1, number < plans.count {
                    StormPeer.converse(plans[number], meeting)
                    finished.add()
                }
            }
        }
        let limit = loop.now + .seconds(300)
        while finished.value < (endsEarly ? plans.count / 2 : plans.count) || (program.open > 0 && !endsEarly) {
            loop.run(in: .default, until: loop.now + .milliseconds(10))
            guard loop.now < limit else {
                failures.append("\(program.open) connections do not close; \(finished.value) peers have finished")
                break
            }
        }
        if endsEarly { isOver.set() } else { program.checkEnds() }
        return (program, peers)
    }
}

/// Blocks the signal of a broken pipe. The peers write to any socket; the program must not raise it.
private func blockPipeSignal() {
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, SIGPIPE)
    pthread_sigmask(SIG_BLOCK, &signals, nil)
}
