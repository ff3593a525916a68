import Glibc
@_spi(Ports) import RunLoopCore
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

/// Random programs of timers, descriptors, posts, tasks and nested runs, which behave the same alone and as a guest.
@Suite("Programs of guests", .timeLimit(.minutes(15)))
struct GuestProgramTests {
    @Test("on virtual time everything happens at the same times in the same order", arguments: seeds(usually: 8))
    func virtual(seed: UInt64) {
        func run(_ way: (RunLoop) -> any Way) -> [String] {
            withSimulation { simulation in
                let program = Program(seed, simulation.loop, way(simulation.loop))
                program.run()
                return program.log
            }
        }
        let alone = run { Alone(loop: $0) }
        let guest = run { Hosted(loop: $0, host: VirtualHost.self) }
        #expect(alone.count > 20 && alone == guest, "seed \(seed)")
    }

    @Test("on the real clock each item is called as often, and never early", arguments: seeds(usually: 8))
    func real(seed: UInt64) {
        func run(_ way: @escaping @Sendable (RunLoop) -> any Way) -> [String] {
            onThread {
                let program = Program(seed, .current, way(.current))
                program.run()
                return program.early == 0 ? program.calls : ["early"]
            }
        }
        let alone = run { Alone(loop: $0) }
        #expect(alone.count > 10, "seed \(seed)")
        #expect(alone == run { Hosted(loop: $0, host: PollHost.self) }, "seed \(seed)")
        #expect(alone == run { Hosted(loop: $0, host: EpollHost.self) }, "seed \(seed)")
    }
}

struct Hosted: Way {
    let loop: RunLoop
    let guest: RunLoop.Guest
    let host: any Host

    init(loop: RunLoop, host: any Host.Type) {
        self.loop = loop
        guest = loop.makeGuest()
        self.host = try! host.init(for: guest)
    }

    func run(in mode: RunLoop.Mode) {
        guest.prepare(in: mode)
        repeat {
            guard host.wait(in: mode, .seconds(60)) else {
                Issue.record("a wake-up was lost")
                return
            }
        } while guest.run(in: mode) == .timedOut
    }
}

/// A host on virtual time, which waits as the loop itself would.
final class VirtualHost: Host {
    private let guest: RunLoop.Guest
    private let ready = ReadyQueue()

    init(for guest: RunLoop.Guest) {
        self.guest = guest
    }

    func wait(in mode: RunLoop.Mode, _ limit: Duration) -> Bool {
        // The loop's own wait, without the loop. Nothing has changed since the guest was last prepared.
        let date = guest.prepare(in: mode)
        guard date != .distantPast else { return true }
        let outcome = RunLoop.current.driver.wait(until: date, into: ready)
        // The guest finds the descriptors once more.
        while ready.popFirst() != nil {}
        return outcome == .woke
    }
}
