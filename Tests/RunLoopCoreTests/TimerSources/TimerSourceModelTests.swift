@_spi(Ports) import RunLoopCore
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

/// Operations on a source, from outside or from its handler. Times are milliseconds from now.
private enum Operation: Sendable {
    case schedule(start: Int64, interval: Int64?)
    case disarm
    case suspend, resume, activate, cancel, release, wait

    static func random(_ generator: inout SeededGenerator) -> Operation {
        switch Int.random(in: 0..<100, using: &generator) {
        case 0..<20:
            let intervals: [Int64?] = [nil, -5, 1, 3, 10, 10, 25, 40]
            return .schedule(
                start: Int64.random(in: -60...60, using: &generator),
                interval: intervals.randomElement(using: &generator)!)
        case 20..<23: return .disarm
        case 23..<38: return .suspend
        case 38..<60: return .resume
        case 60..<70: return .activate
        case 70..<73: return .cancel
        case 73..<75: return .release
        default: return .wait
        }
    }

    func act(on source: TimerSource) {
        switch self {
        case .schedule(let start, let interval):
            source.schedule(
                after: .milliseconds(start), repeating: interval.map { .milliseconds($0) }, leeway: .milliseconds(7))
        case .disarm: source.schedule(deadline: .distantFuture, repeating: .milliseconds(1))
        case .suspend: source.suspend()
        case .resume: source.resume()
        case .activate: source.activate()
        case .cancel: source.cancel()
        case .release, .wait: break
        }
    }
}

/// A life of a source: the operations on it, the time that passes after each, and the actions of its handler.
private struct Life {
    var outside: [(operation: Operation, then: Int64)] = []
    /// The operations of the handler, and the length of its work after each.
    var inside: [(operation: Operation, busy: Int64)] = []
    let hasCancelHandler: Bool

    init(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        hasCancelHandler = Bool.random(using: &generator)
        for _ in 0..<30 {
            outside.append((.random(&generator), Int64.random(in: -30...70, using: &generator).clamped))
        }
        for _ in 0..<20 {
            let isQuiet = Int.random(in: 0..<3, using: &generator) > 0
            inside.append(
                (isQuiet ? .wait : .random(&generator), Int64.random(in: -40...50, using: &generator).clamped))
        }
    }
}

extension Int64 {
    fileprivate var clamped: Int64 { Swift.max(0, self) }
}

/// The rules R170–R189, millisecond by millisecond.
private struct Model {
    var now: Int64 = 0
    var log: [String] = []
    let life: Life
    let isLoop: Bool
    private var isActive = false
    private var suspensions = 0
    private var isCancelled = false
    private var cancelCalled = false
    private(set) var isReleased = false
    private var start: Int64?
    private var interval: Int64?
    /// The time up to which fires were delivered.
    private var counted: Int64 = .min
    private var busyUntil: Int64?
    private var deliveries = 0

    init(_ life: Life, isLoop: Bool) {
        self.life = life
        self.isLoop = isLoop
    }

    var mayHoldHandlers: Bool {
        if busyUntil != nil { return true }
        if isCancelled { return life.hasCancelHandler && !cancelCalled }
        return !isReleased
    }

    mutating func act(_ operation: Operation) {
        switch operation {
        case .schedule(let start, let interval):
            guard !isCancelled else { return }
            self.start = now + start
            self.interval = interval.flatMap { $0 < 0 ? nil : $0 }
            counted = .min
        case .disarm: if !isCancelled { start = nil }
        case .suspend: suspensions += 1
        case .resume: if suspensions > 0 { suspensions -= 1 } else { isActive = true }
        case .activate: isActive = true
        case .cancel: isCancelled = true
        case .release: isReleased = true
        case .wait: break
        }
    }

    /// The number of dates of the grid that have come and were not delivered.
    private var due: Int {
        guard let start, start <= now else { return 0 }
        guard let interval else { return counted == .min ? 1 : 0 }
        return stride(from: start, through: now, by: Int(interval)).count { $0 > counted }
    }

    private mutating func step() {
        if let busyUntil {
            guard busyUntil <= now else { return }
            self.busyUntil = nil
        }
        if isCancelled {
            guard life.hasCancelHandler, !cancelCalled else { return }
            guard isReleased || isActive && suspensions == 0 else { return }
            cancelCalled = true
            return log.append("\(now): cancel")
        }
        guard !isReleased, isActive, suspensions == 0, due > 0 else { return }
        log.append("\(now): \(due)")
        counted = now
        if interval == nil { start = nil }
        let (operation, busy) = life.inside[deliveries % life.inside.count]
        deliveries += 1
        act(operation)
        guard busy > 0 else { return step() }
        busyUntil = now + busy
    }

    mutating func advance(to date: Int64) {
        step()
        while now < date || isLoop && busyUntil != nil {
            now += 1
            // A loop that was busy beyond the date returns without another look.
            if isLoop, now > date {
                if busyUntil == now { busyUntil = nil }
            } else {
                step()
            }
        }
    }
}

@Suite("Timer sources against a naive model", .timeLimit(.minutes(15)))
struct TimerSourceModelTests {
    private func live(_ seed: UInt64, _ place: DeliveryPlace) -> Bool {
        let life = Life(seed: seed)
        var model = Model(life, isLoop: place == .loop)
        return withSimulation { simulation in
            let log = Log<String>()
            let deliveries = Counter()
            let released = Counter()
            let box = Locked<TimerSource?>(nil)
            @Sendable func perform(_ operation: Operation, on source: TimerSource) {
                if case .release = operation {
                    let dropped = box.withLock { exchange(&$0, with: nil) }
                    withExtendedLifetime(dropped) {}
                }
                operation.act(on: source)
            }
            func make() {
                let source = TimerSource(queue: place.queue)
                let tokens = (Token { released.add() }, Token { released.add() })
                let inside = life.inside
                source.setEventHandler { source in
                    tokens.0.touch()
                    log.note(source)
                    let (operation, busy) = inside[(deliveries.add() - 1) % inside.count]
                    perform(operation, on: source)
                    simulation.spend(.milliseconds(busy))
                }
                if life.hasCancelHandler {
                    source.setCancelHandler {
                        tokens.1.touch()
                        log.note("cancel", simulation)
                    }
                }
                box.withLock { $0 = source }
            }
            make()
            // The handler keeps the box.
            defer { _ = box.withLock { exchange(&$0, with: nil) } }
            for (number, (operation, pause)) in life.outside.enumerated() {
                if let source = box.withLock({ $0 }) {
                    perform(operation, on: source)
                    model.act(operation)
                }
                let date = simulation.now + .milliseconds(pause)
                simulation.advance(to: date)
                model.advance(to: date.ms)
                let isGone = released.value == 2
                let message: Comment = "seed \(seed), \(place), after step \(number) \(operation)"
                #expect(log.entries == model.log, message)
                #expect(simulation.now.ms == model.now, message)
                #expect(isGone == !model.mayHoldHandlers, message)
                simulation.loop.checkInvariants()
                guard log.entries == model.log, isGone != model.mayHoldHandlers else { return false }
            }
            return true
        }
    }

    /// The number of lives; `make deep-tests` and `make stress` have more.
    private static let lives = UInt64(amount(of: "LIVES", usually: 600))

    @Test("random lives on a loop go as the rules say")
    func loop() {
        for seed in 0..<Self.lives {
            guard live(seed, .loop) else { return }
        }
    }

    @Test("random lives on the background pool go as the rules say")
    func pool() {
        for seed in 0..<Self.lives / 2 {
            guard live(seed, .pool) else { return }
        }
    }
}
