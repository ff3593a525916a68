import Glibc
import RunLoopCore
import RunLoopKit
import RunLoopSimulation
import TestSupport

/// A program whose handlers post, arm, signal, stop, work, and run the loop in a mode, at random.
///
/// The names of its handlers, and the lines of its blocks, give the modes in which they may be called.
final class RandomProgram {
    /// Returns the modes of an item, by a number from 1 to 3.
    private static let modes: [RunLoop.Modes] = [[], .default, .tracking, .common]
    private static func words(_ number: Int) -> Set<String> {
        [[], ["default"], ["tracking"], ["default", "tracking"]][number]
    }
    /// The line of a block that stops the run, without its modes.
    private static let stopLine = 2000

    private let loop: RunLoop
    private var random: SeededGenerator
    /// Works for a duration.
    private let spend: (Duration) -> Void
    private var actsLeft: Int
    private var depth = 0
    private var count = 0
    private var sources: [CustomSource] = []
    private var items: [RunLoop.Item] = []
    private var grids: [String: (date: RunLoop.Instant, interval: Duration)] = [:]

    init(_ loop: RunLoop, seed: UInt64, acts: Int = 60, isObserved: Bool = true, spend: @escaping (Duration) -> Void) {
        (self.loop, self.actsLeft, self.spend) = (loop, acts, spend)
        random = SeededGenerator(seed: seed)
        loop.addCommonMode(.tracking)
        if isObserved { addObservers() }
        for _ in 0..<number(in: 2...5) { addRepeatingTimer() }
        for _ in 0..<2 { addSource() }
    }

    private func number(in range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &random) }

    private func name(_ kind: String, _ modes: Int) -> String {
        count += 1
        return "\(kind) \(modes) \(count)"
    }

    private func addObservers() {
        let activities: [(RunLoop.Activity, String)] = [
            (.entry, "entry"), (.beforeTimers, "beforeTimers"), (.beforeSources, "beforeSources"),
            (.beforeWaiting, "beforeWaiting"), (.afterWaiting, "afterWaiting"), (.exit, "exit"),
        ]
        for (activity, name) in activities {
            let observer = Observer(activities: activity) { [unowned self] _, _ in
                if name == "entry", depth > 0, number(in: 0...5) == 0 { loop.stop() }
                act(atMost: name == "exit" ? 0 : 1)
            }
            observer.name = name
            loop.add(observer, forMode: .common)
            items.append(observer)
        }
    }

    private func addRepeatingTimer() {
        let modes = number(in: 1...3)
        let (date, interval) = (
            loop.now + .microseconds(number(in: 0...3000)), Duration.microseconds(number(in: 500...4000))
        )
        let timer = Timer(fire: date, interval: interval, repeats: true) { [unowned self] _ in act(atMost: 3) }
        let name = name("repeating", modes)
        timer.name = name
        grids[name] = (date, interval)
        loop.add(timer, forMode: Self.modes[modes])
        items.append(timer)
    }

    private func addSource() {
        let modes = number(in: 1...3)
        let source = CustomSource { [unowned self] _ in act(atMost: 2) }
        source.name = name("source", modes)
        loop.add(source, forMode: Self.modes[modes])
        sources.append(source)
        items.append(source)
    }

    /// Posts a block from another thread.
    static func post(to remote: RunLoop.Remote, _ modes: Int) {
        _ = remote.perform(inModes: Self.modes[modes], { _ in }, line: UInt32(1000 + modes))
    }

    /// Serves a descriptor, to which a test writes.
    func add(_ pair: DescriptorPair) {
        let modes = number(in: 1...3)
        let source = DescriptorSource(fileDescriptor: pair.reader, events: .readable) { [unowned self] _, _ in
            pair.read()
            act(atMost: 2)
        }
        source.name = name("descriptor", modes)
        try! loop.add(source, forMode: Self.modes[modes])
        items.append(source)
    }

    private func act(atMost most: Int) {
        for _ in 0..<number(in: 0...max(0, most)) where most > 0 && actsLeft > 0 {
            actsLeft -= 1
            switch number(in: 0...8) {
            case 0, 1: post(line: 1000) { $0.act(atMost: 2) }
            case 2: post(line: Self.stopLine) { $0.loop.stop() }
            case 3: arm()
            case 4: loop.perform(afterDelay: soon()) { [unowned self] in act(atMost: 1) }
            case 5: sources[number(in: 0...1)].signal()
            case 6: spend(.microseconds(number(in: 0...3000)))
            case 7: startTask()
            default: nest()
            }
        }
    }

    private func post(line: Int, _ body: @escaping (RandomProgram) -> Void) {
        let modes = number(in: 1...3)
        loop.perform(inModes: Self.modes[modes], { [unowned self] in body(self) }, line: UInt32(line + modes))
    }

    /// Returns a short delay, often zero.
    private func soon() -> Duration { .microseconds(max(0, number(in: -1000...2000))) }

    private func arm() {
        let modes = number(in: 1...3)
        let timer = Timer(at: loop.now + soon()) { [unowned self] _ in act(atMost: 2) }
        timer.name = name("once", modes)
        loop.add(timer, forMode: Self.modes[modes])
    }

    private func startTask() {
        let duration = Duration.microseconds(number(in: 0...2000))
        loop.task { [loop] in
            await Task.yield()
            try? await loop.clock.sleep(for: duration)
        }
    }

    private func nest() {
        guard depth < 3 else { return }
        depth += 1
        let limit =
            number(in: 0...2) == 0 ? RunLoop.Instant.distantPast : loop.now + .microseconds(number(in: 0...5000))
        loop.run(in: Bool.random(using: &random) ? .default : .tracking, until: limit)
        depth -= 1
    }

    /// Runs both modes until nothing is left, and removes everything.
    func drain() {
        actsLeft = 0
        for _ in 0..<20 {
            loop.poll(in: .default)
            loop.poll(in: .tracking)
        }
        for item in items { item.invalidate() }
    }

    /// Returns the facts about a handler that a reader of the flight may know.
    func know(_ handler: Flight.Handler) -> PassMachine.Knowledge? {
        if handler.kind == .block {
            guard let line = handler.origin.split(separator: ":").last.flatMap({ Int($0) }), line >= 1000 else {
                return nil
            }
            return .init(modes: Self.words(line % 1000), stops: line >= Self.stopLine)
        }
        if handler.kind == .delayedCall { return .init(modes: ["default"]) }
        guard let words = handler.name?.split(separator: " "), words.count == 3, let modes = Int(words[1]) else {
            return nil
        }
        return .init(modes: Self.words(modes), grid: grids[handler.name!])
    }
}
