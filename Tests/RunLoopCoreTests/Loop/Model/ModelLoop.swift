/// The loop of the pages *How a pass runs*, *Modes* and *Timers*, in arrays that are searched from end to end.
final class ModelLoop: ProgrammedLoop {
    struct Item {
        let number: Int
        let plan: ItemPlan
        var modes: Set<String> = []
        var isCommon = false
        var isEvery = false
        var isValid = true
        var isCalling = false
        /// The time when the item entered each mode; `*` for every mode.
        var joined: [String: Int] = [:]

        /// The next date of a timed item; `nil` if no call is to come.
        var date: Int?
        /// The item's place among equal dates, and the time when it was armed.
        var place: Int?
        var armed = 0
        /// In the item's own call: `true` once it has a new date.
        var isMoved = false
        var lastFire: Int?
        /// The last date of the grid that has fired, or was reported as missed.
        var counted: Int?
        var missed = 0
        /// The time when a source was signalled.
        var signalled: Int?

        var isInLoop: Bool { !modes.isEmpty || isCommon || isEvery }
        func isIn(_ mode: String) -> Bool { isEvery || modes.contains(mode) }
        func joined(_ mode: String) -> Int { joined[isEvery ? "*" : mode] ?? 0 }

        var interval: Int? { if case .timer(_, let interval) = plan { interval } else { nil } }
        var isTimed: Bool {
            switch plan {
            case .timer, .timeout: true
            case .observer, .source: false
            }
        }
        var keepsModesAlive: Bool { if case .observer = plan { false } else { true } }
    }

    struct Run {
        let number: Int
        let mode: String
        let limit: Int?
        let isPoll: Bool
        let returnsAfterSource: Bool
        var isStopped = false
    }

    enum Mail {
        case block(Int, ModePlan)
        case signal(Int)
        case stop(run: Int)
        case wakeUp
    }

    weak var program: LoopProgram?
    var now = 0
    var items: [Int: Item] = [:]
    var commonModes: Set<String> = ["default"]
    var blocks: [(number: Int, place: Int, modes: ModePlan)] = []
    var mail: [Mail] = []
    var runs: [Run] = []
    var runCount = 0
    var isWakeUpPending = false
    var count = 0

    func next() -> Int {
        count += 1
        return count
    }

    var currentMode: String? { runs.last?.mode }
    func spend(_ milliseconds: Int) { now += milliseconds }

    // MARK: Items

    func make(_ item: Int, _ plan: ItemPlan) {
        items[item] = Item(number: item, plan: plan)
        if case .timer(let date, _) = plan { items[item]!.date = date }
    }

    func add(_ item: Int, to modes: ModePlan) {
        guard items[item]!.isValid, !modes.isEmpty else { return }
        let wasInLoop = items[item]!.isInLoop
        join(item, Set(modes.names).union(modes.isCommon ? commonModes : []))
        if modes.isCommon { items[item]!.isCommon = true }
        if modes.isEvery {
            items[item]!.isEvery = true
            items[item]!.joined["*"] = next()
        }
        guard !wasInLoop else { return }
        if case .timer = items[item]!.plan, !items[item]!.isCalling { arm(item) }
        if items[item]!.signalled != nil { items[item]!.signalled = next() }
    }

    func join(_ item: Int, _ modes: Set<String>) {
        for mode in modes where items[item]!.modes.insert(mode).inserted { items[item]!.joined[mode] = next() }
    }

    /// Arms an item. A timer that was in the loop before has kept its place.
    func arm(_ item: Int) {
        items[item]!.armed = next()
        if items[item]!.place == nil { items[item]!.place = next() }
    }

    func remove(_ item: Int, from modes: ModePlan) {
        guard items[item]!.isInLoop else { return }
        items[item]!.modes.subtract(modes.names)
        if modes.isCommon, items[item]!.isCommon {
            items[item]!.modes.subtract(commonModes)
            items[item]!.isCommon = false
        }
        if !items[item]!.isInLoop, case .timeout = items[item]!.plan { leave(item) }
    }

    func leave(_ item: Int) {
        items[item]!.modes = []
        items[item]!.isCommon = false
        items[item]!.isEvery = false
        if case .timeout = items[item]!.plan { (items[item]!.date, items[item]!.isMoved) = (nil, false) }
    }

    func contains(_ item: Int, in modes: ModePlan) -> Bool {
        modes.names.allSatisfy { items[item]!.isIn($0) } && (!modes.isCommon || items[item]!.isCommon)
    }

    func invalidate(_ item: Int) {
        items[item]!.isValid = false
        items[item]!.signalled = nil
        leave(item)
    }

    func isValid(_ item: Int) -> Bool { items[item]!.isValid }

    func addCommonMode(_ mode: String) {
        guard commonModes.insert(mode).inserted else { return }
        for item in items.keys.sorted() where items[item]!.isCommon { join(item, [mode]) }
    }

    // MARK: Timed items

    func setDate(_ item: Int, to date: Int) {
        guard items[item]!.isValid else { return }
        items[item]!.date = date
        items[item]!.counted = nil
        if items[item]!.place != nil || items[item]!.isInLoop { items[item]!.place = next() }
        items[item]!.armed = next()
        items[item]!.isMoved = true
    }

    func date(_ item: Int) -> Int? {
        guard case .timer = items[item]!.plan else { return items[item]!.isInLoop ? items[item]!.date : nil }
        return items[item]!.isValid ? items[item]!.date : items[item]!.lastFire
    }

    func missedFires(_ item: Int) -> Int { items[item]!.missed }

    func add(_ timeout: Int, at date: Int, to modes: ModePlan) {
        guard items[timeout]!.isValid, !modes.isEmpty || items[timeout]!.isInLoop else { return }
        add(timeout, to: modes)
        _ = rearm(timeout, at: date)
    }

    func rearm(_ item: Int, at date: Int) -> Bool {
        guard items[item] != nil, items[item]!.isInLoop else { return false }
        if items[item]!.isCalling, calls.contains(item) { return false }
        items[item]!.date = date
        (items[item]!.place, items[item]!.armed, items[item]!.isMoved) = (next(), next(), true)
        return true
    }

    func cancel(_ timeout: Int) { leave(timeout) }

    /// The delayed calls that have not been made: each is a timeout that is removed after its call.
    var calls: Set<Int> = []

    func call(_ item: Int, after delay: Int, in modes: ModePlan) {
        make(item, .timeout)
        guard !modes.isEmpty else { return }
        calls.insert(item)
        add(item, at: now + max(0, delay), to: modes)
    }

    func cancelCall(_ item: Int) { if isPending(item) { leave(item) } }
    func isPending(_ call: Int) -> Bool { items[call]!.isInLoop && !items[call]!.isCalling }

    func fire(_ item: Int) {
        guard items[item]!.isValid, !items[item]!.isCalling else { return }
        items[item]!.missed = 0
        let wasInLoop = items[item]!.isInLoop
        items[item]!.isCalling = true
        program?.called(item, "by hand")
        items[item]!.isCalling = false
        guard items[item]!.interval != nil else { return invalidate(item) }
        if !wasInLoop && items[item]!.isInLoop { arm(item) }
    }

    /// Calls a timed item whose date has come.
    func callTimed(_ item: Int) {
        let date = items[item]!.date!
        items[item]!.lastFire = date
        if let interval = items[item]!.interval {
            let last = date + (now - date) / interval * interval
            items[item]!.missed = (last - (items[item]!.counted ?? date - interval)) / interval - 1
            items[item]!.counted = last
        }
        items[item]!.isMoved = false
        items[item]!.isCalling = true
        program?.called(item, "due \(date) missed \(items[item]!.missed)")
        items[item]!.isCalling = false
        guard items[item]!.isValid else { return }
        if case .timeout = items[item]!.plan {
            if items[item]!.isMoved { items[item]!.armed = next() } else { leave(item) }
        } else if let interval = items[item]!.interval {
            if !items[item]!.isMoved {
                items[item]!.date = date + ((now - date) / interval + 1) * interval
                items[item]!.place = next()
            }
            items[item]!.armed = next()
        } else {
            invalidate(item)
        }
    }

    // MARK: Sources and blocks

    func signal(_ source: Int, isRemote: Bool) {
        // A source in no loop has none to wake.
        if isRemote { return items[source]!.isInLoop ? mail.append(.signal(source)) : () }
        if items[source]!.isValid, items[source]!.signalled == nil { items[source]!.signalled = next() }
    }

    func post(_ block: Int, in modes: ModePlan, isRemote: Bool) {
        if isRemote {
            mail.append(.block(block, modes))
        } else if !modes.isEmpty {
            blocks.append((block, next(), modes))
        }
    }

    func runsBlock(in mode: String, _ modes: ModePlan) -> Bool {
        modes.isEvery || modes.names.contains(mode) || (modes.isCommon && commonModes.contains(mode))
    }

    /// Collects the mail: blocks first, in the order in which they were posted.
    func collectMail() {
        let collected = mail
        mail = []
        for case .block(let number, let modes) in collected { blocks.append((number, next(), modes)) }
        for letter in collected {
            switch letter {
            case .block: break
            case .signal(let source): signal(source, isRemote: false)
            case .stop(let number): runs[runs.lastIndex { $0.number == number } ?? runs.count - 1].isStopped = true
            case .wakeUp: isWakeUpPending = true
            }
        }
    }

    func stop(isRemote: Bool) {
        if isRemote {
            mail.append(.stop(run: runs.last?.number ?? 0))
        } else if !runs.isEmpty {
            runs[runs.count - 1].isStopped = true
        }
    }

    func wakeUp(isRemote: Bool) {
        if isRemote { mail.append(.wakeUp) } else { isWakeUpPending = true }
    }
}
