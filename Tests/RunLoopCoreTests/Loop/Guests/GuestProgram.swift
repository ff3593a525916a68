// Compiled also by the package Tests/Guests, whose hosts are loops of other libraries: so nothing but the loop is imported.
import Glibc
import RunLoopKit

/// The way in which a program's loop is run.
protocol Way {
    /// Runs until the loop is stopped, or nothing is left in the mode.
    func run(in mode: RunLoop.Mode)
}

struct Alone: Way {
    let loop: RunLoop

    func run(in mode: RunLoop.Mode) {
        _ = loop.run(in: mode)
    }
}

/// A program whose items make further items. Each draws from numbers of its own, so that the calls do not depend on the
/// order.
final class Program {
    private let loop: RunLoop
    private let way: any Way
    private let seed: UInt64
    private let keeper = CustomSource()
    private var open = 0
    private let start: RunLoop.Instant
    private let poster = LoopThread(name: "poster") { $0.add(CustomSource(), forMode: .default) }
    private var depth = 0

    /// The events, with their times.
    private(set) var log: [String] = []
    /// Each item that was called, with the number of calls.
    var calls: [String] { counts.map { "\($0) \($1)" }.sorted() }
    private var counts: [String: Int] = [:]
    private(set) var early = 0
    /// `true` once every item has been called as often as it should.
    var isOver: Bool { open == 0 }

    init(_ seed: UInt64, _ loop: RunLoop, _ way: any Way) {
        (self.seed, self.loop, self.way) = (seed, loop, way)
        start = loop.now
    }

    func run() {
        loop.addCommonMode(.tracking)
        loop.add(keeper, forMode: .default)
        for number in 0..<20 { begin("\(number)", level: 0) }
        way.run(in: .default)
        poster.stop()
        poster.join()
    }

    private func note(_ name: String, _ date: RunLoop.Instant? = nil) {
        if let date, loop.now < date { early += 1 }
        counts[name, default: 0] += 1
        log.append("\(name) at \((loop.now - start) / .microseconds(1))")
    }

    private func ended(_ name: String, level: Int, _ random: Numbers) {
        var random = random
        if level < 3 {
            for number in 0..<Int.random(in: 0...2, using: &random) { begin("\(name).\(number)", level: level + 1) }
        }
        open -= 1
        if open == 0 { keeper.invalidate() }
    }

    private func begin(_ name: String, level: Int) {
        open += 1
        var hash = seed
        for byte in name.utf8 { hash = hash &* 0x100_0000_01b3 ^ UInt64(byte) }
        var random = Numbers(state: hash)
        let delay = Duration.milliseconds(Int.random(in: 0...6, using: &random))
        let date = loop.now + delay
        let modes: RunLoop.Modes = Bool.random(using: &random) ? .common : .default
        let kind = Int.random(in: 0...9, using: &random)
        let next = random
        switch kind {
        case 0:
            loop.add(
                Timer(fire: date, interval: .zero, repeats: false) { [self] _ in
                    note("timer \(name)", date)
                    ended(name, level: level, next)
                }, forMode: modes)
        case 1:
            var fires = 0
            loop.add(
                Timer(fire: date, interval: .milliseconds(2), repeats: true) { [self] timer in
                    fires += 1
                    note("repeating \(name)", date + .milliseconds(2 * (fires - 1)))
                    guard fires == 3 else { return }
                    timer.invalidate()
                    ended(name, level: level, next)
                }, forMode: modes)
        case 2:
            loop.perform(at: date, inModes: modes) { [self] in
                note("call \(name)", date)
                ended(name, level: level, next)
            }
        case 3:
            loop.perform(inModes: modes) { [self] in
                note("block \(name)")
                ended(name, level: level, next)
            }
        case 4:
            let program = Box(self)
            loop.remote.perform(inModes: modes) { _ in
                program.value.note("post \(name)")
                program.value.ended(name, level: level, next)
            }
        case 5:
            let (program, remote) = (Box(self), loop.remote)
            poster.remote.perform { poster in
                poster.perform(afterDelay: delay) {
                    remote.perform(inModes: modes) { _ in
                        program.value.note("foreign post \(name)", date)
                        program.value.ended(name, level: level, next)
                    }
                }
            }
        case 6:
            let (program, clock) = (Box(self), loop.clock)
            loop.task {
                try? await clock.sleep(for: delay)
                program.value.note("task \(name)", date)
                program.value.ended(name, level: level, next)
            }
        case 7:
            var ends: [Int32] = [-1, -1]
            precondition(pipe(&ends) == 0, "no pipe (errno \(errno))")
            let (reader, writer) = (ends[0], ends[1])
            let source = DescriptorSource(fileDescriptor: reader, events: .readable) { [self] source, _ in
                note("descriptor \(name)", date)
                source.invalidate()
                close(reader)
                close(writer)
                ended(name, level: level, next)
            }
            do { try loop.add(source, forMode: modes) } catch { fatalError("\(error)") }
            loop.perform(at: date, inModes: .every) { _ = write(writer, "x", 1) }
        case 8:
            let source = CustomSource { [self] source in
                note("source \(name)", date)
                source.invalidate()
                ended(name, level: level, next)
            }
            loop.add(source, forMode: modes)
            loop.perform(at: date, inModes: .every) { source.signal() }
        default:
            loop.perform(at: date) { [self] in
                note("nested \(name)", date)
                // The innermost run stops first.
                depth += 1
                let inner = depth
                let poll = Timer(fire: loop.now + delay, interval: .milliseconds(1), repeats: true) { [self] _ in
                    if depth == inner { loop.stop() }
                }
                loop.add(poll, forMode: .common)
                way.run(in: .tracking)
                poll.invalidate()
                depth -= 1
                ended(name, level: level, next)
            }
        }
    }
}

private struct Numbers: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        let mixed = (state ^ state >> 30) &* 0xbf58_476d_1ce4_e5b9
        return mixed ^ mixed >> 29
    }
}

/// A variable shared by several closures of one thread, or of two threads that take turns.
final class Box<Value>: @unchecked Sendable {
    var value: Value

    init(_ value: Value) {
        self.value = value
    }
}
