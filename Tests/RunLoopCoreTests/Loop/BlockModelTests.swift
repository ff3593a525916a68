import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@testable import RunLoopCore

/// A loop that runs a random program of posts, nested runs and stops: the real one, or the simplest possible model.
private protocol BlockLoop: AnyObject {
    func post(_ modes: RunLoop.Modes, isMail: Bool, _ block: @escaping () -> Void)
    func run(in mode: RunLoop.Mode, isPoll: Bool) -> RunLoop.RunResult
    func stop()
    func addCommonMode(_ mode: RunLoop.Mode)
}

private final class RealLoop: BlockLoop {
    private let loop: RunLoop

    init(_ loop: RunLoop) {
        self.loop = loop
    }

    func post(_ modes: RunLoop.Modes, isMail: Bool, _ block: @escaping () -> Void) {
        guard isMail else { return loop.perform(inModes: modes, block) }
        // The block stays on this thread.
        nonisolated(unsafe) let block = block
        loop.remote.perform(inModes: modes) { _ in block() }
    }

    func run(in mode: RunLoop.Mode, isPoll: Bool) -> RunLoop.RunResult {
        loop.run(in: mode, until: isPoll ? .distantPast : .distantFuture)
    }

    func stop() { loop.stop() }
    func addCommonMode(_ mode: RunLoop.Mode) { loop.addCommonMode(mode) }
}

/// A loop with its blocks in one array, which is searched for each turn.
private final class NaiveLoop: BlockLoop {
    private typealias Waiting = (number: Int, modes: RunLoop.Modes, block: () -> Void)

    private var queue: [Waiting] = []
    private var mail: [(RunLoop.Modes, () -> Void)] = []
    private var count = 0
    private var commonModes: Set<RunLoop.Mode> = [.default]
    /// For each run under way, `true` if it was stopped.
    private var runs: [Bool] = []

    func post(_ modes: RunLoop.Modes, isMail: Bool, _ block: @escaping () -> Void) {
        if isMail { mail.append((modes, block)) } else { enqueue(modes, block) }
    }

    private func enqueue(_ modes: RunLoop.Modes, _ block: @escaping () -> Void) {
        count += 1
        queue.append((count, modes, block))
    }

    private func collectMail() {
        for (modes, block) in mail { enqueue(modes, block) }
        mail = []
    }

    func run(in mode: RunLoop.Mode, isPoll: Bool) -> RunLoop.RunResult {
        collectMail()
        guard queue.contains(where: { matches($0, mode) }) else { return .finished }
        runs.append(false)
        defer { runs.removeLast() }
        while true {
            collectMail()
            turn(mode)
            collectMail()
            turn(mode)
            if isPoll { return .timedOut }
            if runs.last! { return .stopped }
            if mail.isEmpty && !queue.contains(where: { matches($0, mode) }) { return .finished }
        }
    }

    private func turn(_ mode: RunLoop.Mode) {
        let batch = queue.filter { matches($0, mode) }
        queue.removeAll { matches($0, mode) }
        var done = 0
        for waiting in batch {
            // A turn that has exceeded its share continues if a stop comes between two of its checks.
            if done >= RunLoop.blocksPerTurn && done.isMultiple(of: 64) && !runs.last! { break }
            waiting.block()
            done += 1
        }
        queue = (batch[done...] + queue).sorted { $0.number < $1.number }
    }

    private func matches(_ waiting: Waiting, _ mode: RunLoop.Mode) -> Bool {
        waiting.modes.groups.contains(.every) || waiting.modes.explicit.contains(mode)
            || (waiting.modes.groups.contains(.common) && commonModes.contains(mode))
    }

    func stop() { runs[runs.count - 1] = true }
    func addCommonMode(_ mode: RunLoop.Mode) { commonModes.insert(mode) }
}

/// A program that behaves the same on all loops that behave the same.
private final class BlockProgram {
    private static let modes: [RunLoop.Mode] = [.default, .tracking, "panel"]
    private static let sets: [RunLoop.Modes] = [
        .default, .tracking, "panel", .common, .every, [.default, .tracking], [.common, "panel"],
    ]

    private let loop: any BlockLoop
    private var random: SeededGenerator
    private var posted = 0
    private var depth = 0
    /// The events: the numbers of the blocks that ran, and the results of runs.
    private(set) var events: [String] = []

    init(seed: UInt64, on loop: any BlockLoop) {
        random = SeededGenerator(seed: seed)
        self.loop = loop
    }

    func run() {
        for _ in 0..<12 {
            // Blocks for the same modes take another way than blocks for many.
            let modes = chance(0.7) ? Self.sets[roll(Self.sets.count)] : nil
            for _ in 0..<roll(chance(0.3) ? 4000 : 20) { post(modes) }
            runLoop()
        }
        // The remaining blocks; none are added.
        posted = .max / 2
        for mode in Self.modes + Self.modes { events.append("\(loop.run(in: mode, isPoll: false)) in \(mode)") }
    }

    private func post(_ modes: RunLoop.Modes? = nil) {
        posted += 1
        let number = posted
        loop.post(modes ?? Self.sets[roll(Self.sets.count)], isMail: chance(0.5)) { [unowned self] in perform(number) }
    }

    private func perform(_ number: Int) {
        events.append("\(number)")
        guard posted < 40_000 else { return }
        switch roll(400) {
        case ..<40: for _ in 0..<roll(4) { post() }
        case ..<41: for _ in 0..<roll(3000) { post() }
        case ..<50: if depth < 3 { runLoop() }
        case ..<51: loop.stop()
        case ..<52: if chance(0.05) { loop.addCommonMode(Self.modes[roll(3)]) }
        default: break
        }
    }

    private func runLoop() {
        let mode = Self.modes[roll(3)]
        depth += 1
        events.append("in \(mode) {")
        events.append("} \(loop.run(in: mode, isPoll: chance(0.5)))")
        depth -= 1
    }

    private func roll(_ count: Int) -> Int { Int.random(in: 0..<count, using: &random) }
    private func chance(_ share: Double) -> Bool { Double.random(in: 0..<1, using: &random) < share }
}

@Suite("Blocks, beside one array")
struct BlockModelTests {
    @Test(
        "random posts, nested runs, stops and turns that are cut go as with one array that is searched",
        arguments: seeds(usually: 3))
    func randomPrograms(seed: UInt64) {
        withSimulation { simulation in
            let real = BlockProgram(seed: seed, on: RealLoop(simulation.loop))
            real.run()
            let naive = BlockProgram(seed: seed, on: NaiveLoop())
            naive.run()
            let difference = zip(real.events, naive.events).enumerated().first { $0.element.0 != $0.element.1 }
            if let (index, (here, there)) = difference {
                let before = real.events[max(0, index - 5)..<index]
                Issue.record("seed \(seed), event \(index): \(here), and not \(there), after \(before)")
            }
            #expect(real.events.count == naive.events.count, "seed \(seed)")
            let left = simulation.loop.blocks.count
            #expect(left == 0)
        }
    }
}
