import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@_spi(Ports) @testable import RunLoopCore

/// Timeouts of a loop compared with the simplest possible implementation, an array that is searched from end to end.
@Suite("Timeouts and a model")
struct TimeoutModelTests {
    @Test(
        "random operations, in calls and between runs, agree with an array that is searched",
        arguments: seeds(usually: 8))
    func randomOperations(seed: UInt64) {
        withSimulation { simulation in
            let trial = Trial(seed: seed, simulation.loop)
            for step in 1...150 {
                trial.step()
                simulation.loop.checkInvariants()
                guard let failure = trial.failure else { continue }
                Issue.record("seed \(seed), step \(step): \(failure)")
                break
            }
            #expect(trial.fires > 10, "seed \(seed)")
        }
    }
}

private final class Trial {
    final class Item: Timeout {
        let number: Int
        unowned let trial: Trial

        init(_ number: Int, _ trial: Trial) {
            self.number = number
            self.trial = trial
            super.init()
        }

        override func timeoutExpired() { trial.expired(number) }
    }

    /// The model's record of a timeout.
    struct Entry {
        let number: Int
        var date: RunLoop.Instant?
        var order = 0
        var modes: Set<RunLoop.Mode> = []
        var isCommon = false
        /// The pass in which the timeout was armed.
        var pass = 0
        var isValid = true
        var isCalling = false
        /// During the timeout's call: the date that has come.
        var lastDate: RunLoop.Instant?

        var isScheduled: Bool { !modes.isEmpty || isCommon }
    }

    private let loop: RunLoop
    private var generator: SeededGenerator
    private var items: [Int: Item] = [:]
    private var entries: [Int: Entry] = [:]
    private var made = 0
    private var order = 0
    /// The passes under way, the innermost last.
    private var passes: [Int] = [0]
    private var common: Set<RunLoop.Mode> = [.default]
    private let modes: [RunLoop.Mode] = [.default, .tracking, "timeouts"]
    private(set) var fires = 0
    private(set) var failure: String?

    init(seed: UInt64, _ loop: RunLoop) {
        generator = SeededGenerator(seed: seed)
        self.loop = loop
        loop.observe(.beforeTimers, in: .every) { [unowned self] in passes[passes.count - 1] = loop.statistics.passes }
    }

    private func random(_ bound: Int) -> Int { Int(generator.next() % UInt64(bound)) }

    func step() {
        switch random(20) {
        case 0..<8: run()
        case 8: addCommonMode()
        default: change()
        }
        compare()
    }

    /// Makes a random change, between runs or in a call.
    private func change() {
        guard let number = entries.keys.sorted().randomElement(using: &generator), random(4) > 0 else { return make() }
        switch random(10) {
        case 0..<3: add(number)
        case 3..<6: rearm(number)
        case 6: cancel(number)
        case 7: remove(number)
        case 8: if random(3) == 0 { invalidate(number) }
        default: release(number)
        }
    }

    // MARK: Operations

    private func make() {
        made += 1
        items[made] = Item(made, self)
        entries[made] = Entry(number: made)
        add(made)
    }

    // Few dates, so that many are equal, and some have passed.
    private func randomDate() -> RunLoop.Instant { loop.now + .milliseconds(random(12) - 2) }

    private func arm(_ number: Int, at date: RunLoop.Instant) {
        order += 1
        entries[number]!.date = date
        entries[number]!.order = order
        entries[number]!.pass = loop.statistics.passes
    }

    private func add(_ number: Int) {
        let date = randomDate()
        let chosen = modes.filter { _ in random(3) == 0 }
        let isCommon = random(3) == 0
        loop.add(
            items[number]!, at: date, forMode: RunLoop.Modes(chosen.map { .init($0) } + (isCommon ? [.common] : [])))
        guard entries[number]!.isValid else { return }
        entries[number]!.modes.formUnion(isCommon ? common.union(chosen) : Set(chosen))
        if isCommon { entries[number]!.isCommon = true }
        if entries[number]!.isScheduled { arm(number, at: date) }
    }

    private func rearm(_ number: Int) {
        let date = randomDate()
        let isScheduled = items[number]!.rearm(at: date)
        if isScheduled != entries[number]!.isScheduled { failure = "re-arming \(number) said \(isScheduled)" }
        if isScheduled { arm(number, at: date) }
    }

    private func leave(_ number: Int) {
        entries[number]!.date = nil
        entries[number]!.lastDate = nil
        entries[number]!.modes = []
        entries[number]!.isCommon = false
    }

    private func cancel(_ number: Int) {
        items[number]!.cancel()
        leave(number)
    }

    private func remove(_ number: Int) {
        let mode = modes[random(modes.count)]
        loop.remove(items[number]!, forMode: RunLoop.Modes(mode))
        entries[number]!.modes.remove(mode)
        if !entries[number]!.isScheduled { leave(number) }
    }

    private func invalidate(_ number: Int) {
        items[number]!.invalidate()
        leave(number)
        entries[number]!.isValid = false
    }

    /// Releases a timeout; in its own call, the loop still has it.
    private func release(_ number: Int) {
        guard !entries[number]!.isCalling else { return }
        weak let item = items[number]
        items[number] = nil
        entries[number] = nil
        if item != nil { failure = "\(number) is kept" }
    }

    private func addCommonMode() {
        let mode = modes[random(modes.count)]
        loop.addCommonMode(mode)
        guard common.insert(mode).inserted else { return }
        for number in entries.keys where entries[number]!.isCommon { entries[number]!.modes.insert(mode) }
    }

    private func run() {
        let mode = modes[random(modes.count)]
        let begin = loop.now
        let limit = begin + .milliseconds(random(8))
        passes.append(0)
        loop.run(in: mode, until: limit)
        passes.removeLast()
        // A single pass leaves items armed in it, and so does a run in which a nested one has passed its limit.
        guard limit > begin, loop.now <= limit else { return }
        let left = entries.values.filter { isDue($0, in: mode) }
        if failure == nil, !left.isEmpty { failure = "\(left.map(\.number)) did not fire in \(mode)" }
    }

    // MARK: The model

    private func isDue(_ entry: Entry, in mode: RunLoop.Mode) -> Bool {
        guard let date = entry.date, !entry.isCalling else { return false }
        return entry.modes.contains(mode) && date <= loop.now
    }

    fileprivate func expired(_ number: Int) {
        guard failure == nil else { return }
        fires += 1
        let expected = entries.values.filter { isDue($0, in: loop.currentMode!) && $0.pass < passes.last! }
            .min { ($0.date!, $0.order) < ($1.date!, $1.order) }
        guard expected?.number == number else {
            return failure = "\(number) fired, not \(expected?.number as Int?)"
        }
        entries[number]!.isCalling = true
        entries[number]!.lastDate = entries[number]!.date
        entries[number]!.date = nil
        compare()
        for _ in 0..<random(4) { change() }
        if passes.count < 4 && random(4) == 0 { run() }
        loop.checkInvariants()
        compare()
        entries[number]!.isCalling = false
        if entries[number]!.date == nil { leave(number) }
    }

    private func compare() {
        for (number, entry) in entries where failure == nil {
            let item = items[number]!
            if item.fireDate != entry.date ?? entry.lastDate { failure = "\(number) is due \(item.fireDate as Any)" }
            if item.isValid != entry.isValid { failure = "\(number) is valid: \(item.isValid)" }
            for mode in modes where loop.contains(item, forMode: RunLoop.Modes(mode)) != entry.modes.contains(mode) {
                failure = "\(number) in \(mode): \(!entry.modes.contains(mode))"
            }
        }
    }
}
