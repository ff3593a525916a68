import TestSupport

/// A random program that behaves the same on all loops that behave the same.
final class LoopProgram {
    private static let modes = ["default", "tracking", "panel"]

    private enum Kind: String, CaseIterable { case timer, timeout, delayed, observer, source }

    private unowned let loop: any ProgrammedLoop
    private var random: SeededGenerator
    private var actsLeft = 250
    private var depth = 0
    /// `true` while a run without a limit is under way, in which nothing may repeat.
    private var isUnlimited = false
    private var count = 0
    private var kinds: [Int: Kind] = [:]
    private var repeating: [Int] = []
    private var onEvery: Set<Int> = []
    private var called: Set<Int> = []
    private var calling: Set<Int> = []
    /// Calls and blocks in order, with the time, the mode and the depth, and the results of runs.
    private(set) var log: [String] = []

    init(seed: UInt64, on loop: any ProgrammedLoop) {
        random = SeededGenerator(seed: seed)
        self.loop = loop
    }

    func run() {
        for _ in 0..<roll(12) { act() }
        for _ in 0..<10 {
            for _ in 0..<roll(4) { act() }
            runLoop()
            compare()
        }
        actsLeft = 0
        for mode in Self.modes { note("poll of \(mode): \(loop.run(in: mode, until: 0, returnsAfterSource: false))") }
        compare()
    }

    /// Notes a call. Called by the loop.
    func called(_ number: Int, _ what: String) {
        note("\(kinds[number].map { "\($0.rawValue) " } ?? "")\(number) \(what)")
        if what != "by hand" { called.insert(number) }
        calling.insert(number)
        for _ in 0..<roll(4) where roll(2) == 0 { act() }
        calling.remove(number)
    }

    private func note(_ text: String) {
        log.append("\(text) at \(loop.now) in \(loop.currentMode ?? "-") depth \(depth)")
    }

    private func roll(_ bound: Int) -> Int { Int(random.next() % UInt64(bound)) }

    private func pick<Choice>(_ choices: [Choice]) -> Choice? { choices.isEmpty ? nil : choices[roll(choices.count)] }

    private func pick(_ kind: Kind) -> Int? { pick(kinds.filter { $0.value == kind }.keys.sorted()) }

    private func pickModes() -> ModePlan {
        if roll(12) == 0 { return ModePlan() }
        if roll(3) == 0 { return ModePlan(names: Self.modes.filter { _ in roll(4) == 0 }, isCommon: true) }
        return ModePlan(names: Self.modes.filter { _ in roll(2) == 0 })
    }

    private func modesOfRunning() -> ModePlan {
        roll(2) == 0 ? ModePlan(names: [loop.currentMode ?? "default"]) : pickModes()
    }

    /// Draws one of few dates, so that many are equal, and some have passed.
    private func pickDate() -> Int { loop.now + roll(10) - 2 }

    // MARK: Acts

    private func act() {
        guard actsLeft > 0 else { return }
        actsLeft -= 1
        switch roll(30) {
        case 0..<7: makeItem()
        case 7..<10: makeCall()
        case 10..<13: post()
        case 13..<15: signal()
        case 15..<17: runLoop()
        case 17:
            loop.spend(1 + roll(4))
            note("time passes")
        case 18: stop()
        case 19: wakeUp()
        case 20: if roll(4) == 0 { addCommonMode() }
        case 21..<23: changeModes()
        case 23: invalidate()
        case 24..<27: changeTimer()
        default: changeOneShot()
        }
    }

    private func makeItem() {
        count += 1
        let item = count
        let kind = [.timer, .timer, .timeout, .observer, .source][roll(5)] as Kind
        kinds[item] = kind
        switch kind {
        case .timer:
            let interval = roll(3) == 0 && !isUnlimited ? 1 + roll(4) : nil
            if interval != nil { repeating.append(item) }
            loop.make(item, .timer(date: pickDate(), interval: interval))
        case .timeout: loop.make(item, .timeout)
        case .observer:
            let activities = ActivityPlan.allCases.filter { _ in roll(3) == 0 }
            loop.make(item, .observer(activities: activities, repeats: roll(3) > 0, order: roll(3)))
        default: loop.make(item, .source(order: roll(3)))
        }
        if kind == .timeout || roll(10) > 0 {
            add(item, to: kind != .timeout && roll(10) == 0 ? ModePlan(isEvery: true) : modesOfRunning())
        }
    }

    private func add(_ item: Int, to modes: ModePlan) {
        if modes.isEvery { onEvery.insert(item) }
        if kinds[item] == .timeout {
            let date = pickDate()
            note("add timeout \(item) for \(date) to \(modes)")
            loop.add(item, at: date, to: modes)
        } else {
            note("add \(kinds[item]!) \(item) to \(modes)")
            loop.add(item, to: modes)
        }
    }

    private func makeCall() {
        count += 1
        kinds[count] = .delayed
        let (delay, modes) = (roll(8) - 1, modesOfRunning())
        note("delayed \(count) after \(delay) in \(modes)")
        loop.call(count, after: delay, in: modes)
    }

    private func post() {
        for _ in 0..<(roll(20) == 0 ? 40 : 1 + roll(2)) {
            count += 1
            let (modes, isRemote) = (roll(10) == 0 ? ModePlan(isEvery: true) : modesOfRunning(), roll(3) == 0)
            note("post \(count) to \(modes)\(isRemote ? " by mail" : "")")
            loop.post(count, in: modes, isRemote: isRemote)
        }
    }

    private func signal() {
        guard let source = pick(.source) else { return }
        let isRemote = roll(3) == 0
        note("signal \(source)\(isRemote ? " by mail" : "")")
        loop.signal(source, isRemote: isRemote)
    }

    private func stop() {
        let isRemote = roll(3) == 0
        note("stop\(isRemote ? " by mail" : "")")
        loop.stop(isRemote: isRemote)
    }

    private func wakeUp() {
        let isRemote = roll(2) == 0
        note("wake up\(isRemote ? " by mail" : "")")
        loop.wakeUp(isRemote: isRemote)
    }

    private func addCommonMode() {
        let mode = pick(Self.modes)!
        note("\(mode) becomes common")
        loop.addCommonMode(mode)
    }

    private func pickItem() -> Int? { pick(kinds.filter { $0.value != .delayed }.keys.sorted()) }

    private func changeModes() {
        guard let item = pickItem(), !onEvery.contains(item) else { return }
        let modes = modesOfRunning()
        guard roll(2) == 0 else { return add(item, to: modes) }
        note("remove \(item) from \(modes)")
        loop.remove(item, from: modes)
    }

    private func invalidate() {
        guard let item = pickItem() else { return }
        note("invalidate \(item)")
        loop.invalidate(item)
    }

    private func changeTimer() {
        guard let timer = pick(.timer) else { return }
        if roll(3) == 0 {
            note("fire \(timer)")
            return loop.fire(timer)
        }
        let date = pickDate()
        note("date of \(timer): \(date)")
        loop.setDate(timer, to: date)
    }

    private func changeOneShot() {
        guard let item = pick([.timeout, .delayed].compactMap { pick($0) }) else { return }
        if roll(2) == 0 {
            let date = pickDate()
            note("move \(item) to \(date): \(loop.rearm(item, at: date))")
        } else {
            note("cancel \(item)")
            if kinds[item] == .timeout { loop.cancel(item) } else { loop.cancelCall(item) }
        }
    }

    private func runLoop() {
        guard depth < 3 else { return }
        let mode = pick(Self.modes)!
        let limit: Int? =
            switch roll(8) {
            case 0: repeating.contains { loop.isValid($0) } || isUnlimited ? loop.now + 5 : nil
            case 1: loop.now - roll(2)
            default: loop.now + roll(12)
            }
        let wasUnlimited = isUnlimited
        if limit == nil { isUnlimited = true }
        depth += 1
        note("run until \(limit.map { "\($0)" } ?? "-")")
        let result = loop.run(in: mode, until: limit, returnsAfterSource: roll(4) == 0)
        depth -= 1
        isUnlimited = wasUnlimited
        note("\(mode) \(result)")
    }

    /// Compares everything that a program can read from its items.
    private func compare() {
        for (item, kind) in kinds.sorted(by: { $0.key < $1.key }) where !calling.contains(item) {
            if kind == .delayed {
                log.append("\(item) \(loop.isPending(item))")
                continue
            }
            let isValid = loop.isValid(item)
            var text = "\(item) \(isValid)"
            for mode in Self.modes where loop.contains(item, in: ModePlan(names: [mode])) { text += " \(mode)" }
            if loop.contains(item, in: ModePlan(isCommon: true)) { text += " common" }
            if kind == .timeout || (kind == .timer && (isValid || called.contains(item))) {
                text += " \(loop.date(item) as Int?)"
            }
            log.append(text)
        }
    }
}
