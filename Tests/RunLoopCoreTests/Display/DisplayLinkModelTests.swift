import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@_spi(Ports) @testable import RunLoopCore

/// A link against the simplest thing that can do the same: frames in an array, searched and counted one by one.
@Suite("The arithmetic of display links")
struct DisplayLinkModelTests {
    @Test("random runs, blocks, pauses, rates and modes agree with counting", arguments: 1...150 as ClosedRange<UInt64>)
    func randomSteps(seed: UInt64) {
        withSimulation { simulation in
            var generator = SeededGenerator(seed: seed)
            let loop = simulation.loop
            loop.keepAlive(in: [.default, .tracking])
            let rate = [24, 30, 60, 144, 240].randomElement(using: &generator)!
            let clock = FrameClock(framesPerSecond: rate, start: ns(Int64.random(in: -50...50, using: &generator)))
            // The lengths of the calls, most of them zero.
            let lengths = (0..<97).map { _ in
                Int.random(in: 0..<4, using: &generator) == 0 ? Int64.random(in: 0...60_000_000, using: &generator) : 0
            }
            var model = Model(clock: clock, lengths: lengths)
            var calls: [Model.Call] = []
            let link = DisplayLink(clock: clock) { link in
                calls.append(.init(at: loop.now, frame: link.frame, dropped: link.droppedFrames))
                simulation.spend(.nanoseconds(lengths[(calls.count - 1) % lengths.count]))
            }
            for step in 1...120 {
                let length = Int64.random(in: 0...70_000_000, using: &generator)
                let choice = Int.random(in: 0..<16, using: &generator)
                switch choice {
                case 0..<6:
                    loop.run(in: .default, until: ns(model.now + length))
                    model.run(until: model.now + length, callsLink: true)
                case 6..<8:
                    loop.run(in: .tracking, until: ns(model.now + length))
                    model.run(until: model.now + length, callsLink: false)
                case 8..<10:
                    simulation.spend(.nanoseconds(length))
                    model.now += length
                case 10:
                    link.isPaused.toggle()
                    model.pause(link.isPaused)
                case 11, 12:
                    link.frameInterval = Int.random(in: 1...5, using: &generator)
                    model.set(Int64(link.frameInterval))
                case 13:
                    link.remove(from: loop, forMode: .default)
                    model.leave()
                default:
                    link.add(to: loop, forMode: .default)
                    model.join()
                }
                guard calls == model.calls, loop.now == ns(model.now) else {
                    Issue.record("seed \(seed), step \(step): \(calls.suffix(3)), not \(model.calls.suffix(3))")
                    return
                }
            }
            #expect(link.totalDroppedFrames == model.calls.reduce(0) { $0 + $1.dropped }, "seed \(seed)")
            loop.checkInvariants()
        }
    }
}

private struct Model {
    struct Call: Equatable {
        let at: RunLoop.Instant
        let frame: Int64
        let dropped: Int
    }

    /// The date of every frame, the first at or before the beginning.
    private let dates: [Int64]
    private let lengths: [Int64]

    var now: Int64 = 0
    private(set) var calls: [Call] = []
    private var isMember = false
    private var isPaused = false
    private var divisor = 1
    /// Indices into `dates`: of the latest call since the beginning or the last break, and of the next turn.
    private var last: Int?
    private var turn = 0
    private var step = 1
    private var aim = 0
    private var wasPutOff = false
    private let first: Int64

    init(clock: FrameClock, lengths: [Int64]) {
        let first = clock.frame(at: ns(0))
        self.first = first
        dates = (0..<240 * 20).map { clock.date(of: first + $0).nanoseconds }
        self.lengths = lengths
    }

    private func following(_ date: Int64) -> Int { dates.firstIndex { $0 > date }! }

    mutating func run(until limit: Int64, callsLink: Bool) {
        let isPoll = limit <= now
        while true {
            let deadline = isMember && !isPaused && callsLink ? dates[aim] : .max
            now = max(now, min(deadline, limit))
            let called = deadline <= now && serve()
            if isPoll || now > limit || (now == limit && !called) { return }
        }
    }

    private mutating func serve() -> Bool {
        let current = following(now) - 1
        if current != aim && !wasPutOff {
            wasPutOff = true
            aim = current + 1
            return false
        }
        let lost = stride(from: turn, to: current, by: step).reduce(0) { count, _ in count + 1 }
        calls.append(Call(at: ns(now), frame: first + Int64(current), dropped: lost))
        now += lengths[(calls.count - 1) % lengths.count]
        last = current
        begin(turn: current + divisor)
        while dates[aim] <= now { aim += 1 }
        return true
    }

    private mutating func begin(turn: Int) {
        (self.turn, aim, step, wasPutOff) = (turn, turn, divisor, false)
    }

    private mutating func beginAnew() {
        last = nil
        if isMember && !isPaused { begin(turn: following(now)) }
    }

    mutating func pause(_ isPaused: Bool) {
        self.isPaused = isPaused
        beginAnew()
    }

    mutating func join() {
        guard !isMember else { return }
        isMember = true
        beginAnew()
    }

    mutating func leave() {
        isMember = false
        beginAnew()
    }

    mutating func set(_ divisor: Int64) {
        guard self.divisor != Int(divisor) else { return }
        self.divisor = Int(divisor)
        guard isMember, !isPaused, let last, dates[turn] > now else { return }
        begin(turn: max(last + Int(divisor), following(now)))
    }
}
