#if Adapters
import AsyncAlgorithms
import RunLoopKit
import RunLoopSimulation
import RunLoopTesting
import TestSupport
import Testing

/// The operators of swift-async-algorithms on a loop's clock, compared with models. `make stress` draws ten thousand of
/// each.
@Suite("Algorithms of others on a loop's clock")
struct MarbleTests {
    private static let count = amount(of: "MARBLES", usually: 200)

    @Test("debounce gives each value that is followed by a rest")
    func debounce() {
        compare { inputs, interval in
            var outputs: [Marble] = []
            for (index, input) in inputs.marbles.enumerated() {
                let rest = input.time + interval
                let next = index + 1 < inputs.marbles.count ? inputs.marbles[index + 1].time : Int.max
                if next > rest || index == inputs.marbles.count - 1 {
                    outputs.append(Marble(time: min(rest, max(inputs.end, input.time)), value: input.value))
                }
            }
            return outputs
        } by: { inputs, interval, clock, give in
            for await value in inputs.debounce(for: .milliseconds(interval), clock: clock) { give(value) }
        }
    }

    @Test("throttle gives the latest at most once in an interval")
    func throttle() {
        compare { inputs, interval in
            var outputs: [Marble] = []
            var (last, latest): (Int?, Int?) = (nil, nil)
            for input in inputs.marbles {
                latest = input.value
                guard last.map({ input.time - $0 >= interval }) ?? true else { continue }
                outputs.append(input)
                (last, latest) = (input.time, nil)
            }
            if let last, let latest { outputs.append(Marble(time: max(inputs.end, last + interval), value: latest)) }
            return outputs
        } by: { inputs, interval, clock, give in
            for await value in inputs._throttle(for: .milliseconds(interval), clock: clock) { give(value) }
        }
    }

    @Test("chunks end with each tick")
    func chunks() {
        compare(ticking: true) { inputs, interval in
            var outputs: [Marble] = []
            var tick = interval
            var sum: Int?
            for input in inputs.marbles {
                while tick < input.time {
                    if let sum { outputs.append(Marble(time: tick, value: sum)) }
                    (sum, tick) = (nil, tick + interval)
                }
                sum = (sum ?? 0) + input.value
            }
            if let sum { outputs.append(Marble(time: min(tick, inputs.end), value: sum)) }
            return outputs
        } by: { inputs, interval, clock, give in
            let ticks = AsyncTimerSequence(interval: .milliseconds(interval), clock: clock)
            for await chunk in inputs.chunked(by: ticks) { give(chunk.reduce(0, +)) }
        }
    }

    // MARK: -

    /// The input elements and the time of the last one.
    struct Inputs {
        let marbles: [Marble]
        let end: Int

        /// The times are all even or all odd.
        init(from start: Int, _ random: inout SeededGenerator) {
            var time = start
            marbles = (0..<Int.random(in: 0...12, using: &random)).map { _ in
                time += 2 * Int.random(in: 1...20, using: &random)
                return Marble(time: time, value: Int.random(in: 1...9, using: &random))
            }
            end = time + 2 * Int.random(in: 1...20, using: &random)
        }
    }

    struct Marble: Equatable, CustomStringConvertible {
        let time, value: Int
        var description: String { "\(value)@\(time)" }
    }

    private typealias Algorithm =
        @Sendable (AsyncStream<Int>, Int, RunLoop.Clock, @Sendable (Int) -> Void) async -> Void

    /// Compares an algorithm with its model. No element arrives at the end of an interval, which may begin with an
    /// element or be one of many from the start.
    private func compare(
        ticking isTicking: Bool = false, _ model: (Inputs, Int) -> [Marble], by algorithm: @escaping Algorithm
    ) {
        for seed in 0..<UInt64(Self.count) {
            var random = SeededGenerator(seed: seed)
            let inputs = Inputs(from: isTicking ? 1 : 0, &random)
            let interval = 2 * Int.random(in: 0...15, using: &random) + (isTicking ? 2 : 1)
            let outputs = Self.play(inputs, interval, algorithm)
            #expect(outputs == model(inputs, interval), "seed \(seed): \(inputs), \(interval)")
        }
    }

    private static func play(_ inputs: Inputs, _ interval: Int, _ algorithm: @escaping Algorithm) -> [Marble] {
        withSimulation { simulation in
            simulation.captureExecutors()
            let clock = simulation.loop.clock
            let begin = simulation.now
            let outputs = Log<Marble>()
            let (stream, input) = AsyncStream.makeStream(of: Int.self)
            simulation.loop.task {
                for marble in inputs.marbles {
                    try await clock.sleep(until: begin + .milliseconds(marble.time))
                    input.yield(marble.value)
                }
                try await clock.sleep(until: begin + .milliseconds(inputs.end))
                input.finish()
            }
            simulation.loop.task {
                await algorithm(stream, interval, clock) {
                    outputs.append(Marble(time: Int(simulation.now.nanoseconds / 1_000_000), value: $0))
                }
            }
            simulation.advance(by: .seconds(2))
            #expect(simulation.escapes.isEmpty, "\(simulation.escapes)")
            return outputs.entries
        }
    }
}
#endif
