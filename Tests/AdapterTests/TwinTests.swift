#if Adapters
import AsyncAlgorithms
import Glibc
import RunLoopKit
import RunLoopSimulation
import RunLoopTesting
import TestSupport
import Testing

@Suite("Twins")
struct TwinTests {
    @Test("two processes under load print the same bytes", .timeLimit(.minutes(5)))
    func twins() async throws {
        let isOver = Flag()
        let burners = (0..<4).map { _ in PlainThread { while !isOver.isSet { sched_yield() } } }
        defer {
            isOver.set()
            for burner in burners { burner.join() }
        }
        async let one = Self.output()
        async let other = Self.output()
        let (first, second) = try await (one, other)
        #expect(first.split(separator: UInt8(ascii: "\n")).count > 500)
        #expect(first == second)
    }

    private static func output() async throws -> [UInt8] {
        let result = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
            TwinTests.play()
        }
        return try #require(result).standardOutputContent
    }

    /// Tasks and actors of two loops and of the default executor, in twenty simulations.
    private static func play() {
        for seed in UInt64(0)..<20 {
            let trace = withSimulation(traced: true) { simulation in
                simulation.captureExecutors()
                let loop = simulation.loop
                let worker = LoopThread(name: "worker") { $0.add(CustomSource(), forMode: .common) }
                let stations: [any Station] = [
                    Settled(on: worker.remote.executor()), Settled(on: loop.remote.executor()), Homeless(),
                ]
                let clocks = [loop.remote.clock(), worker.remote.clock()]
                let (stream, input) = AsyncStream.makeStream(of: Int.self)
                for number in 1...4 {
                    Task {
                        var random = SeededGenerator(seed: seed &* 7 &+ UInt64(number))
                        let clock = clocks.randomElement(using: &random)!
                        for _ in 0..<10 {
                            try await clock.sleep(for: .milliseconds(Int.random(in: 1...20, using: &random)))
                            let count = await stations.randomElement(using: &random)!.visit()
                            let turn = try await worker.remote.run { _ in
                                simulation.note("\(number) \(count)")
                                return count
                            }
                            input.yield(number * turn)
                            await Task.yield()
                        }
                    }
                }
                loop.task {
                    for await value in stream.debounce(for: .milliseconds(3), clock: loop.clock) {
                        simulation.note("rested \(value)")
                    }
                }
                simulation.advance(by: .seconds(1))
                simulation.note("\(simulation.escapes)")
                worker.stop()
                worker.join()
                return simulation.trace
            }
            print(trace.joined(separator: "\n"))
        }
    }

    private protocol Station: Actor {
        func visit() -> Int
    }

    private actor Homeless: Station {
        private var visits = 0

        func visit() -> Int {
            visits += 1
            return visits
        }
    }

    private actor Settled: Station {
        private let home: RunLoop.Executor
        private var visits = 0
        nonisolated var unownedExecutor: UnownedSerialExecutor { home.serial.asUnownedSerialExecutor() }

        init(on home: RunLoop.Executor) {
            self.home = home
        }

        func visit() -> Int {
            visits += 1
            return visits
        }
    }
}
#endif
