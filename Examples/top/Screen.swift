import RunLoopConsole

/// The state of the screen, which keys change. Independent of a terminal.
struct Screen {
    private(set) var snapshot: Console.Snapshot?
    /// A sentence about the connection.
    var status = "connecting"
    private(set) var section = Section.handlers
    private(set) var order = Order.time
    private(set) var filter = ""
    private(set) var isTyping = false
    private(set) var isPaused = false
    private(set) var showsHelp = false
    /// The name of the chosen loop.
    private var chosen: String?
    /// The number of rows of the section above the first visible one.
    private(set) var scroll = 0

    /// Shows a snapshot, if the screen is not paused.
    mutating func show(_ new: Console.Snapshot) {
        guard !isPaused else { return }
        snapshot = new
        status = ""
    }

    /// The loops in the chosen order; by time, blocked or silent ones come first.
    var loops: [Console.Loop] {
        let loops = (snapshot?.loops ?? []).enumerated()
        func isBad(_ loop: Console.Loop) -> Bool { loop.state == .blocked || loop.state == .silent }
        let sorted = loops.sorted { left, right in
            let (one, other) = (left.element, right.element)
            let isBefore: Bool? =
                switch order {
                case .time:
                    isBad(one) != isBad(other) ? isBad(one) : differ(one.computing ?? 0, other.computing ?? 0)
                case .lateness: differ(one.lateness.most, other.lateness.most)
                case .count: differ(Double(one.counts.items), Double(other.counts.items))
                case .name: one.name == other.name ? nil : one.name < other.name
                }
            return isBefore ?? (left.offset < right.offset)
        }
        return sorted.map(\.element)
    }

    /// Returns `true` if the first value is larger; `nil` if they are about equal.
    private func differ(_ one: Double, _ other: Double) -> Bool? { abs(one - other) < 1e-9 ? nil : one > other }

    /// The loop whose section is shown.
    var loop: Console.Loop? { loops.first { $0.name == chosen } ?? loops.first }

    // MARK: Keys

    /// - Returns: `false` for the key that ends the program.
    mutating func press(_ key: Key) -> Bool {
        if key == .interrupt { return false }
        if isTyping {
            type(key)
            return true
        }
        if showsHelp {
            showsHelp = false
            return true
        }
        switch key {
        case .character("q"), .function(10): return false
        case .character("h"), .character("?"), .function(1): showsHelp = true
        case .character("/"), .function(3), .function(4): isTyping = true
        case .escape: filter = ""
        case .character(" "): isPaused.toggle()
        case .character("t"), .character("P"), .character("T"): order = .time
        case .character("l"): order = .lateness
        case .character("c"): order = .count
        case .character("n"): order = .name
        case .character("s"), .character(">"), .function(6): order = next(order, 1)
        case .tab, .right: change(to: next(section, 1))
        case .backTab, .left: change(to: next(section, -1))
        case .character(let number)
        where number.wholeNumberValue.map { (1...Section.allCases.count).contains($0) } == true:
            change(to: Section.allCases[number.wholeNumberValue! - 1])
        case .up: choose(-1)
        case .down: choose(1)
        case .pageUp: scroll = max(0, scroll - 10)
        case .pageDown: scroll += 10
        case .home: scroll = 0
        default: break
        }
        return true
    }

    private mutating func type(_ key: Key) {
        scroll = 0
        switch key {
        case .character(let character): filter.append(character)
        case .backspace: _ = filter.popLast()
        case .enter: isTyping = false
        case .escape: (filter, isTyping) = ("", false)
        default: break
        }
    }

    private mutating func change(to section: Section) { (self.section, scroll) = (section, 0) }

    private mutating func choose(_ step: Int) {
        let loops = loops
        guard let index = loops.firstIndex(where: { $0.name == loop?.name }) else { return }
        chosen = loops[min(max(0, index + step), loops.count - 1)].name
        scroll = 0
    }

    private func next<Value: CaseIterable & Equatable>(_ value: Value, _ step: Int) -> Value {
        let all = Array(Value.allCases)
        return all[(all.firstIndex(of: value)! + step + all.count) % all.count]
    }
}
