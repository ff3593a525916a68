import RunLoopKit
import RunLoopSimulation

/// The run loop as programs use it.
final class SimulatedLoop: ProgrammedLoop {
    private final class Expiry: Timeout {
        let handler: () -> Void

        init(_ handler: @escaping () -> Void) {
            self.handler = handler
            super.init()
        }

        override func timeoutExpired() { handler() }
    }

    weak var program: LoopProgram?
    private let simulation: Simulation
    private let loop: RunLoop
    private let start: RunLoop.Instant
    private var items: [Int: RunLoop.Item] = [:]
    private var calls: [Int: DelayedCall] = [:]

    init(_ simulation: Simulation) {
        self.simulation = simulation
        loop = simulation.loop
        start = loop.now
    }

    private func instant(_ date: Int) -> RunLoop.Instant { start + .milliseconds(date) }

    private func number(_ date: RunLoop.Instant) -> Int { Int((date - start).nanoseconds / 1_000_000) }

    private func modes(_ plan: ModePlan) -> RunLoop.Modes {
        if plan.isEvery { return .every }
        return RunLoop.Modes(plan.names.map { RunLoop.Modes(RunLoop.Mode($0)) } + (plan.isCommon ? [.common] : []))
    }

    var now: Int { number(loop.now) }
    var currentMode: String? { loop.currentMode?.name }
    func spend(_ milliseconds: Int) { simulation.spend(.milliseconds(milliseconds)) }

    // MARK: Items

    func make(_ item: Int, _ plan: ItemPlan) {
        switch plan {
        case .timer(let date, let interval):
            items[item] = Timer(
                fire: instant(date), interval: .milliseconds(interval ?? 0), repeats: interval != nil
            ) { [unowned self] timer in
                let isManual = firedByHand.contains(item)
                program?.called(
                    item, isManual ? "by hand" : "due \(number(timer.fireDate)) missed \(timer.missedFires)")
            }
        case .timeout:
            items[item] = Expiry { [unowned self] in
                program?.called(item, "due \(number((items[item] as! Timeout).fireDate!)) missed 0")
            }
        case .observer(let activities, let repeats, let order):
            let activities = activities.reduce(into: RunLoop.Activity()) { $0.formUnion(Self.activities[$1]!) }
            items[item] = Observer(activities: activities, repeats: repeats, order: order) {
                [unowned self] _, activity in
                program?.called(item, Self.activities.first { $0.value == activity }!.key.rawValue)
            }
        case .source(let order):
            items[item] = CustomSource(order: order) { [unowned self] _ in program?.called(item, "source") }
        }
    }

    private static let activities: [ActivityPlan: RunLoop.Activity] = [
        .entry: .entry, .beforeTimers: .beforeTimers, .beforeSources: .beforeSources, .beforeWaiting: .beforeWaiting,
        .afterWaiting: .afterWaiting, .exit: .exit,
    ]

    func add(_ item: Int, to plan: ModePlan) {
        switch items[item]! {
        case let timer as Timer: loop.add(timer, forMode: modes(plan))
        case let observer as Observer: loop.add(observer, forMode: modes(plan))
        case let source as CustomSource: loop.add(source, forMode: modes(plan))
        default: preconditionFailure("a timeout is added with a date")
        }
    }

    func remove(_ item: Int, from plan: ModePlan) { loop.remove(items[item]!, forMode: modes(plan)) }
    func contains(_ item: Int, in plan: ModePlan) -> Bool { loop.contains(items[item]!, forMode: modes(plan)) }
    func invalidate(_ item: Int) { items[item]!.invalidate() }
    func isValid(_ item: Int) -> Bool { items[item]!.isValid }

    // MARK: Timed items

    private var firedByHand: Set<Int> = []
    private func timer(_ item: Int) -> Timer { items[item] as! Timer }
    private func timeout(_ item: Int) -> Timeout { items[item] as! Timeout }

    func setDate(_ item: Int, to date: Int) { timer(item).fireDate = instant(date) }

    func fire(_ item: Int) {
        let isOutermost = firedByHand.insert(item).inserted
        timer(item).fire()
        if isOutermost { firedByHand.remove(item) }
    }

    func date(_ item: Int) -> Int? {
        guard let timer = items[item] as? Timer else { return timeout(item).fireDate.map { number($0) } }
        return number(timer.fireDate)
    }

    func missedFires(_ item: Int) -> Int { timer(item).missedFires }
    func add(_ item: Int, at date: Int, to plan: ModePlan) {
        loop.add(timeout(item), at: instant(date), forMode: modes(plan))
    }
    func cancel(_ item: Int) { timeout(item).cancel() }

    func rearm(_ item: Int, at date: Int) -> Bool {
        guard let call = calls[item] else { return timeout(item).rearm(at: instant(date)) }
        let isPending = call.rearm(at: instant(date))
        if isPending { dates[item] = date }
        return isPending
    }

    func call(_ item: Int, after delay: Int, in plan: ModePlan) {
        dates[item] = now + max(0, delay)
        calls[item] = loop.perform(afterDelay: .milliseconds(delay), inModes: modes(plan)) { [unowned self] in
            program?.called(item, "due \(dates[item]!) missed 0")
        }
    }

    private var dates: [Int: Int] = [:]
    func cancelCall(_ item: Int) { calls[item]!.cancel() }
    func isPending(_ call: Int) -> Bool { calls[call]!.isPending }

    // MARK: Sources, blocks and runs

    func signal(_ item: Int, isRemote: Bool) {
        let source = items[item] as! CustomSource
        if isRemote { source.remote.signal() } else { source.signal() }
    }

    func post(_ block: Int, in plan: ModePlan, isRemote: Bool) {
        // The program and its items stay on this thread.
        nonisolated(unsafe) let program = program!
        if isRemote {
            loop.remote.perform(inModes: modes(plan)) { _ in program.called(block, "block") }
        } else {
            loop.perform(inModes: modes(plan)) { program.called(block, "block") }
        }
    }

    func run(in mode: String, until limit: Int?, returnsAfterSource: Bool) -> String {
        let limit = limit.map { instant($0) } ?? .distantFuture
        return "\(loop.run(in: RunLoop.Mode(mode), until: limit, returnAfterSourceHandled: returnsAfterSource))"
    }

    func stop(isRemote: Bool) { if isRemote { loop.remote.stop() } else { loop.stop() } }
    func wakeUp(isRemote: Bool) { if isRemote { loop.remote.wakeUp() } else { loop.wakeUp() } }
    func addCommonMode(_ mode: String) { loop.addCommonMode(RunLoop.Mode(mode)) }
}
