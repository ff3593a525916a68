// One operation of RunLoopKit, many times, for callgrind to count. `Costs <operation>` prints in its last line the
// number of operations, and of sleeps of the loop meanwhile; without an operation it prints their names.
import Glibc
import RunLoopKit
import RunLoopSimulation

/// Counts from the call of this function, which is not optimized so that it keeps its name, to the end of the process.
///
/// - Parameter body: performs operations and returns their number.
@inline(never) @_optimize(none)
private func measured(_ body: () -> Int) -> Never {
    let waits = loop.statistics.waits
    let count = body()
    print(count, loop.statistics.waits - waits)
    fflush(nil)
    _exit(0)
}

nonisolated(unsafe) private let loop = RunLoop.current
private let count = 10_000
private let hour = Duration.seconds(3600)

/// A generator with the same order in every run.
private struct Scrambler: RandomNumberGenerator {
    var state: UInt64 = 43
    mutating func next() -> UInt64 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return state ^ state >> 29
    }
}

private func order() -> [Int] {
    var scrambler = Scrambler()
    return (0..<count).shuffled(using: &scrambler)
}

/// Makes timers of between one hour and two, in scrambled order, in a loop that has run for a while: its tables have
/// had their size before.
private func pendingTimers() -> [Timer] {
    for timer in add(order()) { timer.invalidate() }
    pass()
    return add(order())
}

/// Makes delayed calls likewise.
private func pendingCalls() -> [DelayedCall] {
    for call in call(order()) { call.cancel() }
    pass()
    return call(order())
}

/// Makes timeouts of between one hour and two, in scrambled order, in a loop that has run for a while.
private func pendingTimeouts() -> [Deadline] {
    let timeouts = (0..<count).map { _ in Deadline() }
    for _ in 0..<2 {
        for timeout in timeouts { timeout.cancel() }
        pass()
        for number in order() { loop.add(timeouts[number], at: loop.passTime + hour + .milliseconds(number)) }
    }
    return timeouts
}

private final class Deadline: Timeout {
    override func timeoutExpired() { observe(1) }
}

private func call(_ numbers: [Int]) -> [DelayedCall] {
    var calls: [DelayedCall] = []
    calls.reserveCapacity(count)
    let begin = loop.passTime + hour
    for number in numbers { calls.append(loop.perform(at: begin + .milliseconds(number)) { observe(number) }) }
    return calls
}

private func add(_ numbers: [Int]) -> [Timer] {
    var timers: [Timer] = []
    timers.reserveCapacity(count)
    for number in numbers {
        let delay = hour + .milliseconds(number)
        timers.append(.scheduledTimer(withTimeInterval: delay, repeats: false) { _ in observe(number) })
    }
    return timers
}

nonisolated(unsafe) private var observed = 0
@inline(never) private func observe(_ number: Int) { observed &+= number }

/// Waits for a guest as a host does, and runs it `count` times.
private func host(_ guest: RunLoop.Guest, _ count: Int) {
    var ready = pollfd(fd: descriptor(of: guest), events: Int16(POLLIN), revents: 0)
    for _ in 0..<count {
        precondition(poll(&ready, 1, -1) == 1, "nothing is due")
        guest.run()
    }
}

private func descriptor(of guest: RunLoop.Guest) -> Int32 {
    do { return try guest.fileDescriptor } catch { fatalError("\(error)") }
}

private func pass(in mode: RunLoop.Mode = .default) { loop.run(in: mode, until: .distantPast) }

private final class Target {
    func call() { observe(1) }
}

/// Makes delayed calls, one after another, each with a context of its own.
private func callNext(of left: Int, in loop: RunLoop) {
    guard left > 0 else { return }
    loop.perform(afterDelay: .seconds(1)) { callNext(of: left - 1, in: loop) }
}

/// Watches `count` pipes, each with an unread byte.
@discardableResult
private func watchPipes(_ count: Int) -> [DescriptorSource] {
    (0..<count).map { _ in
        var ends: [Int32] = [0, 0]
        precondition(pipe(&ends) == 0 && write(ends[1], "x", 1) == 1, "no pipe")
        let source = DescriptorSource(fileDescriptor: ends[0], events: .readable) { _, _ in observe(1) }
        do { try loop.add(source, forMode: .default) } catch { fatalError("\(error)") }
        return source
    }
}

/// Starts a thread that posts a block some time after each request; the last block stops the loop.
///
/// - Returns: a closure that requests a block.
private func startPoster() -> () -> Void {
    var ends: [Int32] = [0, 0]
    precondition(pipe(&ends) == 0, "no pipe")
    let (reader, writer) = (ends[0], ends[1])
    let remote = loop.remote
    poster = LoopThread(name: "poster") { _ in
        var byte: UInt8 = 0
        while read(reader, &byte, 1) == 1 {
            usleep(10_000)
            remote.perform { loop in
                postsLeft -= 1
                if postsLeft == 0 { loop.stop() }
            }
        }
    }
    return { precondition(write(writer, "x", 1) == 1, "nobody reads") }
}

/// The number of timers fired by the loops of one timeline.
nonisolated(unsafe) private var turns = 0

nonisolated(unsafe) private var poster: LoopThread?
nonisolated(unsafe) private var postsLeft = 0

/// Each operation prepares its data and ends the process with `measured`.
private let operations: [(name: String, run: () -> Never)] = [
    (
        "add a timer",
        {
            for timer in pendingTimers() { timer.invalidate() }
            pass()
            let numbers = order()
            measured { add(numbers).count }
        }
    ),
    (
        "cancel a timer",
        {
            let timers = pendingTimers()
            let order = order()
            measured {
                for index in order { timers[index].invalidate() }
                return count
            }
        }
    ),
    (
        "re-arm a timer",
        {
            let timers = pendingTimers()
            let order = order()
            for index in order { timers[index].fireDate = loop.now + hour }
            measured {
                for _ in 0..<5 { for index in order { timers[index].fireDate = loop.now + hour } }
                return 5 * count
            }
        }
    ),
    (
        "re-arm a timer to an earlier date",
        {
            let timers = pendingTimers()
            let order = order()
            var date = loop.now + hour
            measured {
                for _ in 0..<5 {
                    for index in order {
                        // Before all others: the whole way up the heap.
                        date = date - .microseconds(1)
                        timers[index].fireDate = date
                    }
                }
                return 5 * count
            }
        }
    ),
    (
        "fire a repeating timer, pass and sleep included",
        {
            var left = 20
            Timer.scheduledTimer(withTimeInterval: .milliseconds(2), repeats: true) { _ in
                left -= 1
                if left == 0 { loop.stop() }
            }
            loop.run(in: .default)
            left = 500
            measured {
                loop.run(in: .default)
                return 500
            }
        }
    ),
    (
        "fire a one-shot, one of 10,000 that are due",
        {
            for timer in pendingTimers() { timer.invalidate() }
            let now = loop.now
            for number in order() {
                let date = now - .microseconds(number)
                loop.add(Timer(fire: date, interval: .zero, repeats: false) { _ in observe(number) }, forMode: .default)
            }
            measured {
                pass()
                return count
            }
        }
    ),
    (
        "fire a one-shot, one of 10,000 that are due, with a flight recorder",
        {
            let recorder = try! FlightRecorder(loop)
            for timer in pendingTimers() { timer.invalidate() }
            let now = loop.now
            for number in order() {
                let date = now - .microseconds(number)
                loop.add(Timer(fire: date, interval: .zero, repeats: false) { _ in observe(number) }, forMode: .default)
            }
            measured {
                pass()
                return withExtendedLifetime(recorder) { count }
            }
        }
    ),
    (
        "fire a one-shot that is armed anew in its callback, on virtual time",
        {
            withSimulation { simulation in
                simulation.loop.add(
                    Timer(at: simulation.now + .milliseconds(10)) { $0.rearm(at: $0.fireDate + .milliseconds(10)) },
                    forMode: .default)
                simulation.advance(by: .seconds(1))
                let before = simulation.loop.statistics.fires
                measured {
                    simulation.advance(by: .seconds(100))
                    return simulation.loop.statistics.fires - before
                }
            }
        }
    ),
    (
        "add a delayed call",
        {
            for call in pendingCalls() { call.cancel() }
            pass()
            let numbers = order()
            measured { call(numbers).count }
        }
    ),
    (
        "cancel a delayed call",
        {
            let calls = pendingCalls()
            let order = order()
            measured {
                for index in order { calls[index].cancel() }
                return count
            }
        }
    ),
    (
        "re-arm a delayed call",
        {
            let calls = pendingCalls()
            let order = order()
            measured {
                for _ in 0..<5 { for index in order { calls[index].rearm(at: loop.passTime + hour + hour) } }
                return 5 * count
            }
        }
    ),
    (
        "make a delayed call, one of 10,000 that are due",
        {
            for call in pendingCalls() { call.cancel() }
            let now = loop.now
            for number in order() { loop.perform(at: now - .microseconds(number)) { observe(number) } }
            measured {
                pass()
                return count
            }
        }
    ),
    (
        "add a timeout",
        {
            let timeouts = pendingTimeouts()
            for timeout in timeouts { timeout.cancel() }
            pass()
            let order = order()
            let begin = loop.passTime + hour
            measured {
                for number in order { loop.add(timeouts[number], at: begin + .milliseconds(number)) }
                return count
            }
        }
    ),
    (
        "cancel a timeout",
        {
            let timeouts = pendingTimeouts()
            let order = order()
            measured {
                for index in order { timeouts[index].cancel() }
                return count
            }
        }
    ),
    (
        "re-arm a timeout",
        {
            let timeouts = pendingTimeouts()
            let order = order()
            measured {
                for _ in 0..<5 { for index in order { timeouts[index].rearm(at: loop.passTime + hour + hour) } }
                return 5 * count
            }
        }
    ),
    (
        "a timeout that expires, one of 10,000 that are due",
        {
            let timeouts = pendingTimeouts()
            for timeout in timeouts { timeout.cancel() }
            let now = loop.now
            for number in order() { loop.add(timeouts[number], at: now - .microseconds(number)) }
            measured {
                pass()
                return withExtendedLifetime(timeouts) { count }
            }
        }
    ),
    (
        "make a delayed call and cancel it, of 10,000 of one target",
        {
            let target = Target()
            var calls: [DelayedCall] = []
            calls.reserveCapacity(count)
            let turn = {
                for _ in 0..<count { calls.append(loop.perform(Target.call, target: target, afterDelay: hour)) }
                for index in order() { calls[index].cancel() }
                calls.removeAll(keepingCapacity: true)
                return count
            }
            _ = turn()
            measured(turn)
        }
    ),
    (
        "post a block and run it",
        {
            let remote = loop.remote
            loop.add(CustomSource(), forMode: .default)
            let post = {
                let goal = loop.statistics.blocks + count
                for number in 0..<count { remote.perform { _ in observe(number) } }
                while loop.statistics.blocks < goal { pass() }
                return count
            }
            _ = post()
            measured(post)
        }
    ),
    (
        "post a block from another thread to a loop that sleeps",
        {
            let ask = startPoster()
            loop.add(CustomSource(), forMode: .default)
            // Requested just before the sleep, the post arrives long after it has begun.
            loop.add(Observer(activities: .beforeWaiting) { _, _ in ask() }, forMode: .default)
            let posts = { (count: Int) in
                postsLeft = count
                loop.run(in: .default)
                return count
            }
            _ = posts(5)
            measured { posts(100) }
        }
    ),
    (
        "a custom source's event, pass included",
        {
            let source = CustomSource { _ in observe(1) }
            loop.add(source, forMode: .default)
            let turn = {
                source.signal()
                pass()
            }
            turn()
            measured {
                for _ in 0..<count { turn() }
                return count
            }
        }
    ),
    (
        "signal a custom source and serve it, one of 10,000",
        {
            let sources = (0..<count).map { _ in CustomSource { _ in observe(1) } }
            for source in sources { loop.add(source, forMode: .default) }
            let turn = {
                for source in sources { source.signal() }
                pass()
                return count
            }
            _ = turn()
            measured(turn)
        }
    ),
    (
        "pause a descriptor's source and let it go on",
        {
            let sources = watchPipes(100)
            pass()
            measured {
                for source in sources {
                    source.events = []
                    source.events = .readable
                }
                return sources.count
            }
        }
    ),
    (
        "a descriptor's event, pass included",
        {
            watchPipes(1)
            pass()
            measured {
                for _ in 0..<count { pass() }
                return count
            }
        }
    ),
    (
        "a descriptor's event, one of 100",
        {
            watchPipes(100)
            // libevent accepts at most 32 events at first, and more once it has met as many.
            for _ in 0..<10 { pass() }
            measured {
                for _ in 0..<100 { pass() }
                return 100 * 100
            }
        }
    ),
    (
        "a pass with nothing to do",
        {
            let timers = pendingTimers()
            pass()
            measured {
                for _ in 0..<count { pass() }
                return withExtendedLifetime(timers) { count }
            }
        }
    ),
    (
        "a wait of a host with an idle guest",
        {
            let timers = pendingTimers()
            let guest = loop.makeGuest()
            var ready = pollfd(fd: descriptor(of: guest), events: Int16(POLLIN), revents: 0)
            measured {
                for _ in 0..<count {
                    guest.prepare()
                    precondition(poll(&ready, 1, 0) == 0, "something is due")
                }
                return withExtendedLifetime(timers) { count }
            }
        }
    ),
    (
        "a guest's pass with nothing to do",
        {
            let timers = pendingTimers()
            let guest = loop.makeGuest()
            guest.run()
            measured {
                for _ in 0..<count { guest.run() }
                return withExtendedLifetime(timers) { count }
            }
        }
    ),
    (
        "a timer's fire in a guest, with the host's wait",
        {
            let timer = Timer.scheduledTimer(withTimeInterval: .microseconds(1), repeats: true) { _ in observe(1) }
            let guest = loop.makeGuest()
            host(guest, 10)
            measured {
                host(guest, count)
                return withExtendedLifetime(timer) { count }
            }
        }
    ),
    (
        "a descriptor's event in a guest, with the host's wait",
        {
            watchPipes(1)
            let guest = loop.makeGuest()
            host(guest, 10)
            measured {
                host(guest, count)
                return count
            }
        }
    ),
    (
        "a pass in the other of two modes",
        {
            let modes: [RunLoop.Mode] = ["first", "second"]
            for mode in modes {
                loop.add(Timer(timeInterval: hour, repeats: false) { _ in }, forMode: RunLoop.Modes(mode))
                pass(in: mode)
            }
            measured {
                for turn in 0..<count { pass(in: modes[turn % 2]) }
                return count
            }
        }
    ),
    (
        "add to the common modes and remove",
        {
            loop.addCommonMode(.tracking)
            let timer = Timer(timeInterval: hour, repeats: false) { _ in }
            let turn = {
                loop.add(timer, forMode: .common)
                loop.remove(timer, forMode: .common)
            }
            turn()
            measured {
                for _ in 0..<count { turn() }
                return count
            }
        }
    ),
    (
        "add and remove in the mode of a variable",
        {
            let mode = RunLoop.Mode("panel")
            let timer = Timer(at: loop.now + hour) { _ in }
            let turn = {
                loop.add(timer, forMode: RunLoop.Modes(mode))
                loop.remove(timer, forMode: RunLoop.Modes(mode))
            }
            turn()
            measured {
                for _ in 0..<count { turn() }
                return count
            }
        }
    ),
    (
        "read and set a value that is bound to the loop",
        {
            let bound = LoopBound(0, loop: loop)
            measured {
                for _ in 0..<count { bound.value += 1 }
                return count
            }
        }
    ),
    (
        "ask for a result on the loop's own thread",
        {
            let remote = loop.remote
            measured {
                for number in 0..<count { try? remote.performAndWait { _ in observe(number) } }
                return count
            }
        }
    ),
    (
        "make a delayed call and have it made, on virtual time",
        {
            measured {
                withSimulation { simulation in
                    callNext(of: count, in: simulation.loop)
                    simulation.loop.run(in: .default)
                }
                return count
            }
        }
    ),
    (
        "fire on virtual time",
        {
            withSimulation { simulation in
                for period in 1...100 {
                    Timer.scheduledTimer(withTimeInterval: .milliseconds(period), repeats: true) { _ in observe(1) }
                }
                simulation.advance(by: .seconds(1))
                let before = simulation.loop.statistics.fires
                measured {
                    simulation.advance(by: .seconds(2))
                    return simulation.loop.statistics.fires - before
                }
            }
        }
    ),
    (
        "a turn of one of ten loops on one timeline",
        {
            withSimulation { simulation in
                // Coprime, so that nearly every fire is another loop's than the previous one.
                for period in [7, 11, 13, 17, 19, 23, 29, 31, 37, 41] {
                    let thread = LoopThread(name: "loop") { _ in
                        Timer.scheduledTimer(withTimeInterval: .milliseconds(period), repeats: true) { _ in turns += 1 }
                    }
                    // The simulation ends the thread.
                    _ = thread
                }
                simulation.advance(by: .seconds(1))
                let before = turns
                measured {
                    simulation.advance(by: .seconds(10))
                    return turns - before
                }
            }
        }
    ),
    (
        "fire a timer that misses dates, on virtual time",
        {
            withSimulation { simulation in
                // The first miss allocates a place for the count.
                Timer.scheduledTimer(withTimeInterval: .milliseconds(10), repeats: true) { timer in
                    simulation.spend(.milliseconds(25))
                    observe(timer.missedFires)
                }
                simulation.advance(by: .seconds(1))
                let before = simulation.loop.statistics.fires
                measured {
                    simulation.advance(by: .seconds(100))
                    return simulation.loop.statistics.fires - before
                }
            }
        }
    ),
    (
        "a frame of a display link, on virtual time",
        {
            withSimulation { simulation in
                var frames = 0
                DisplayLink.scheduledDisplayLink { _ in frames += 1 }
                simulation.advance(by: .seconds(1))
                let before = frames
                measured {
                    simulation.advance(by: .seconds(100))
                    return frames - before
                }
            }
        }
    ),
    (
        "a timer source's event, on virtual time",
        {
            withSimulation { simulation in
                var events = 0
                let handler: (TimerSource) -> Void = { _ in events += 1 }
                let source = try? TimerSource.scheduled(
                    start: .zero, interval: .milliseconds(10), repeats: true, handler: handler)
                simulation.advance(by: .seconds(1))
                let before = events
                measured {
                    simulation.advance(by: .seconds(100))
                    return withExtendedLifetime(source) { events - before }
                }
            }
        }
    ),
]

/// The first call makes room; the second is counted.
private let ofTasks = taskOperations.map { operation in
    (
        name: operation.name,
        run: { () -> Never in
            operation.run(loop, 100)
            measured {
                operation.run(loop, count)
                return count
            }
        }
    )
}

let all = operations + ofTasks
if let name = CommandLine.arguments.dropFirst().first, let operation = all.first(where: { $0.name == name }) {
    // The cost of the first use of `print` is not counted.
    print(operation.name, 0)
    operation.run()
}
for operation in all { print(operation.name) }
