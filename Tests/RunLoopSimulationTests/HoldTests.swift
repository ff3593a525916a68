import Glibc
@_spi(Ports) import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@Suite("Simulations: holds", .timeLimit(.minutes(5)))
struct HoldTests {
    @Test("a hold keeps the time until a thread outside releases it, while blocks that are due now still run")
    func released() {
        withSimulation { simulation in
            #expect(simulation.isReproducible)
            var log: [String] = []
            simulation.loop.perform(afterDelay: .seconds(1)) { log.append("timeout") }
            let hold = simulation.hold(for: "the printer")
            #expect(simulation.standing == .idle(until: seconds(0), next: "the printer, in real time"))
            let remote = simulation.loop.remote
            nonisolated(unsafe) let append = { log.append($0) }
            let printer = PlainThread {
                for answer in ["one", "two"] {
                    usleep(3_000)
                    remote.perform { append("\(answer) at \($0.now)") }
                }
                usleep(3_000)
                hold.release()
                hold.release()
            }
            simulation.advance(by: .seconds(2))
            printer.join()
            #expect(log == ["one at 0.000000000", "two at 0.000000000", "timeout"])
            #expect(simulation.escapes.isEmpty && !simulation.isReproducible)
            #expect(simulation.picture.hasPrefix("seed 0, at 2.000000000, not reproducible\n"))
        }
    }

    /// Starts a peer in real time, which answers each byte after a number of milliseconds.
    private static func answer(on descriptor: Int32, after pauses: [UInt32]) -> PlainThread {
        PlainThread {
            var byte: UInt8 = 0
            for pause in pauses {
                guard read(descriptor, &byte, 1) == 1 else { return }
                usleep(pause * 1_000)
                _ = send(descriptor, &byte, 1, Int32(MSG_NOSIGNAL))
            }
        }
    }

    @Test("a hundred answers after 3 ms, or after 12, come before a timeout of a second of virtual time")
    func answers() throws {
        for isHeld in [true, false] {
            let (own, other) = makeSockets()
            let peer = Self.answer(on: other, after: (0..<100).map { $0 % 10 == 9 ? 12 : 3 })
            defer {
                close(own)
                peer.join()
                close(other)
            }
            var (answers, timeouts) = (0, 0)
            try withSimulation { simulation in
                let loop = simulation.loop
                for _ in 0..<100 {
                    var isOver = false
                    let hold = isHeld ? simulation.hold(for: "an answer") : nil
                    var byte: UInt8 = 1
                    write(own, &byte, 1)
                    let source = DescriptorSource(fileDescriptor: own, events: .readable) { source, _ in
                        read(own, &byte, 1)
                        hold?.release()
                        answers += 1
                        isOver = true
                        loop.stop()
                    }
                    try loop.add(source, forMode: .default)
                    let timeout = loop.perform(afterDelay: .seconds(1)) {
                        timeouts += 1
                        isOver = true
                        loop.stop()
                    }
                    while !isOver { loop.run(in: .default) }
                    timeout.cancel()
                    source.invalidate()
                }
                #expect(simulation.escapes.isEmpty)
                if isHeld { #expect(simulation.now == seconds(0)) }
            }
            if isHeld { #expect(answers == 100 && timeouts == 0) } else { #expect(timeouts > 0) }
        }
    }

    @Test("a hold that has reached its limit is given up by name, and the time continues")
    func givenUp() {
        withSimulation { simulation in
            var fires = 0
            Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: true) { _ in fires += 1 }
            let hold = simulation.hold(for: "an answer of nobody", limit: .milliseconds(20))
            let start = ContinuousClock.now
            simulation.advance(by: .seconds(10))
            #expect(ContinuousClock.now - start >= .milliseconds(20))
            #expect(fires == 10)
            let escape = "main no longer waits for an answer of nobody, after 0.02 seconds of real time, at 0.000000000"
            #expect(simulation.escapes == [escape])
            #expect(simulation.standing == .escaped([escape]))
            #expect(simulation.picture.contains("escape: \(escape)"))
            withExtendedLifetime(hold) {}
        }
    }

    @Test("each hold has its own time, and waits count for all that are there")
    func several() {
        withSimulation { simulation in
            let holds = (1...3).map { simulation.hold(for: "\($0)", limit: .milliseconds(10 * $0)) }
            simulation.advance(by: .seconds(1))
            #expect(simulation.escapes.map { $0.split(separator: " ")[5] } == ["1,", "2,", "3,"])
            withExtendedLifetime(holds) {}
        }
    }

    @Test("a hold ends with its last reference, with its thread, and with the simulation")
    func ends() {
        let kept = Log<Simulation.Hold>()
        withSimulation { simulation in
            _ = simulation.hold(for: "nothing", limit: .seconds(3_600))
            let worker = LoopThread(name: "worker") { _ in
                kept.append(simulation.hold(for: "the end", limit: .seconds(3_600)))
            }
            simulation.advance(by: .seconds(1))
            worker.join()
            #expect(simulation.escapes.isEmpty)
            kept.append(simulation.hold(for: "for ever", limit: .seconds(3_600)))
            _ = LoopThread(name: "busy") { _ in simulation.spend(.seconds(1)) }
        }
        #expect(kept.entries.count == 2)
        for hold in kept.entries { hold.release() }
    }

    @Test("a block that a thread outside runs comes while the time is held")
    func latch() {
        withSimulation { simulation in
            let hold = simulation.hold(for: "a block")
            let isRunning = Flag()
            let remote = Locked<RunLoop.Remote?>(nil)
            let outside = PlainThread {
                let loop = RunLoop.current
                remote.withLock { $0 = loop.remote }
                loop.add(CustomSource(), forMode: .default)
                isRunning.set()
                loop.run(in: .default)
            }
            while !isRunning.isSet { sched_yield() }
            let asks = LoopThread(name: "asks") { loop in
                let answer = try? remote.withLock { $0! }.performAndWait { loop in
                    usleep(3_000)
                    return 7
                }
                simulation.note("\(answer ?? 0) at \(loop.now)")
                hold.release()
            }
            simulation.advance(by: .seconds(1))
            #expect(simulation.picture.contains("7 at 0.000000000"))
            remote.withLock { $0 }?.stop()
            outside.join()
            asks.join()
        }
    }
}
