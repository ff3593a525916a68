#if Adapters
import CGLib
import RunLoopGLib
import RunLoopKit
import TestSupport
import Testing

private let inner: RunLoop.Mode = "inner"

/// Random sources of a main context, which add and remove one another and run their loop nested.
private final class Sources {
    /// The loop of the program: GLib's own, or a run loop that has the context.
    enum Host {
        case glib
        case runLoop(RunLoop, nestedOfGLib: SeededGenerator)
    }

    private let context: OpaquePointer?
    private var host: Host
    private var random: SeededGenerator
    private var sources: [Int: UInt32] = [:]
    private var next = 0
    private var left = 300
    /// For each nested run, the number of events after which it ends, and how.
    private var runs: [(left: Int, end: () -> Void)] = []
    private(set) var log: [String] = []

    init(_ context: OpaquePointer?, _ host: Host, seed: UInt64) {
        (self.context, self.host) = (context, host)
        random = SeededGenerator(seed: seed)
    }

    func run() {
        for _ in 0..<4 { add() }
        // Lower than all others, so that there is always something to count.
        addIdle(to: context, priority: 1000) { [unowned self] in
            count()
            if sources.count < 3 { add() }
            return left > 0
        }
        runNested(for: .max)
    }

    private func chance(_ part: Int) -> Bool { Int.random(in: 0..<part, using: &random) == 0 }

    private func add() {
        let number = next
        next += 1
        sources[number] = addIdle(to: context, priority: Int32.random(in: -2...2, using: &random)) { [unowned self] in
            happens(number)
        }
    }

    /// - Returns: `true` if the source stays.
    private func happens(_ number: Int) -> Bool {
        log.append("\(number) at \(runs.count)")
        count()
        guard left > 0 else { return false }
        if chance(3) { add() }
        if chance(4), let other = sources.keys.sorted().randomElement(using: &random), other != number {
            removeSource(sources.removeValue(forKey: other)!, from: context)
            log.append("removes \(other)")
        }
        if chance(5), runs.count < 6 {
            runNested(for: Int.random(in: 1...6, using: &random))
            log.append("\(number) goes on")
        }
        guard sources[number] != nil, left > 0, chance(2) else {
            sources[number] = nil
            return false
        }
        return true
    }

    private func count() {
        left -= 1
        guard let last = runs.indices.last else { return }
        runs[last].left -= 1
        if runs[last].left <= 0 || left <= 0 { runs[last].end() }
    }

    private func runNested(for events: Int) {
        var ofGLib = true
        if case .runLoop(let loop, var choices) = host {
            ofGLib = Bool.random(using: &choices)
            host = .runLoop(loop, nestedOfGLib: choices)
        }
        if ofGLib {
            let loop = g_main_loop_new(context, 0)
            defer { g_main_loop_unref(loop) }
            runs.append((events, { g_main_loop_quit(loop) }))
            g_main_loop_run(loop)
        } else if case .runLoop(let loop, _) = host {
            runs.append((events, { loop.stop() }))
            loop.run(in: runs.count % 2 == 0 ? inner : .default)
        }
        runs.removeLast()
        // The stop of a run also stops a later one, if its last event has ended several.
        if left <= 0, let last = runs.last { last.end() }
    }
}

@Suite("Random sources in a main context")
struct GLibModelTests {
    @Test(
        "random sources are dispatched in the same order by GLib alone and in a run loop", arguments: seeds(usually: 20)
    )
    func orders(seed: UInt64) {
        let alone = onThread {
            let context = g_main_context_new()
            defer { g_main_context_unref(context) }
            let program = Sources(context, .glib, seed: seed)
            program.run()
            return program.log
        }
        let hosted = onThread {
            let context = g_main_context_new()
            defer { g_main_context_unref(context) }
            let loop = RunLoop.current
            loop.addCommonMode(inner)
            let glib = try! GLibContext(context, on: loop)
            defer { glib.invalidate() }
            // Other work of the loop changes nothing.
            let source = CustomSource { _ in }
            loop.add(source, forMode: .common)
            let timer = Timer(timeInterval: .microseconds(50), repeats: true) { _ in
                source.signal()
                loop.perform(inModes: .common) {}
            }
            loop.add(timer, forMode: .common)
            let program = Sources(
                context, .runLoop(loop, nestedOfGLib: SeededGenerator(seed: seed &+ 1000)), seed: seed)
            program.run()
            return program.log
        }
        let difference = zip(alone, hosted).enumerated().first { $1.0 != $1.1 }
        #expect(alone.count > 30 && hosted == alone, "seed \(seed), at \(difference.map { "\($0)" } ?? "the end")")
    }

    @Test(
        "random programs are called as often beside a busy context, never early, and the context continues",
        arguments: seeds(usually: 8))
    func programs(seed: UInt64) {
        let alone = onThread {
            let loop = RunLoop.current
            let program = Program(seed, loop, Alone(loop: loop))
            program.run()
            return program.early == 0 ? program.calls : ["early"]
        }
        let (beside, idles, timeouts) = onThread {
            let context = g_main_context_new()
            defer { g_main_context_unref(context) }
            let loop = RunLoop.current
            let glib = try! GLibContext(context, on: loop)
            defer { glib.invalidate() }
            var (idles, timeouts) = (0, 0)
            addIdle(to: context) {
                idles += 1
                return true
            }
            addTimeout(1, to: context) {
                timeouts += 1
                return true
            }
            let program = Program(seed, loop, Alone(loop: loop))
            // The context keeps a run from finishing, so the program has to stop it.
            let end = Observer(activities: .beforeTimers) { _, _ in if program.isOver { loop.stop() } }
            loop.add(end, forMode: .common)
            program.run()
            return (program.early == 0 ? program.calls : ["early"], idles, timeouts)
        }
        #expect(alone.count > 10 && beside == alone, "seed \(seed)")
        #expect(idles > 100 && timeouts > 3, "seed \(seed): \(idles) and \(timeouts) calls of the context")
    }
}
#endif
