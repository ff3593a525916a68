import Glibc
@_spi(Ports) import RunLoopCore
import RunLoopKit
import RunLoopSimulation
import Synchronization
import TestSupport
import Testing

/// An item that another thread can stop.
enum Stoppable: CaseIterable {
    case timer, displayLink, observer, sourceOfLoop, sourceOfPool

    static let ofLoops = allCases.filter { $0 != .sourceOfPool }

    /// Schedules an item that is called again and again, as fast as its loop can.
    ///
    /// - Returns: a closure that stops the item from any thread.
    func schedule(in loop: RunLoop, _ call: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
        switch self {
        case .timer:
            let timer = Timer(timeInterval: .nanoseconds(1), repeats: true) { _ in call() }
            loop.add(timer, forMode: .default)
            return { [remote = timer.remote] in remote.invalidate() }
        case .displayLink:
            let link = DisplayLink(clock: FrameClock(framesPerSecond: 240, per: .nanoseconds(240))) { _ in call() }
            link.add(to: loop, forMode: .default)
            return { [remote = link.remote] in remote.invalidate() }
        case .observer:
            let observer = Observer(activities: .beforeTimers) { [unowned loop] _, _ in
                call()
                loop.wakeUp()
            }
            loop.add(observer, forMode: .default)
            loop.wakeUp()
            return { [remote = observer.remote] in remote.invalidate() }
        case .sourceOfLoop: return Self.schedule(on: .loop(loop.remote), call)
        case .sourceOfPool: return Self.schedule(on: .background, call)
        }
    }

    private static func schedule(
        on queue: DeliveryQueue, _ call: @escaping @Sendable () -> Void
    ) -> @Sendable () -> Void {
        let source = TimerSource(queue: queue)
        source.setEventHandler { _ in call() }
        source.schedule(after: .zero, repeating: .nanoseconds(1))
        source.activate()
        return { source.cancel() }
    }
}

/// No handler begins once the call that stopped its item has returned.
@Suite("Stopping from another thread", .timeLimit(.minutes(60)))
struct StopRaceTests {
    /// The number of raced calls of each kind; `make stress` makes more.
    private static let calls = amount(of: "RACED_CALLS", usually: 5_000)

    /// Items of one loop that are called in turn, and threads that stop each item just when its turn comes.
    private final class Race: Sendable {
        static let count = 128
        let stopped = (0..<count).map { _ in Flag() }
        let calls = Counter()
        let late = Counter()
        private let last = Atomic(0)

        func called(_ index: Int) {
            if stopped[index].isSet { late.add() }
            calls.add()
            last.store(index, ordering: .relaxed)
        }

        /// Returns the next item that is still to be stopped, `distance` after the last called item.
        func next(_ distance: Int) -> Int? {
            let first = last.load(ordering: .relaxed) + distance
            return (first..<first + Self.count).lazy.map { $0 % Self.count }.first { !self.stopped[$0].isSet }
        }
    }

    @Test("no call begins after it was stopped, however tight the race", arguments: Stoppable.allCases)
    func race(_ kind: Stoppable) {
        var (calls, late) = (0, 0)
        withLoopThread { thread in
            while calls < Self.calls {
                let race = Race()
                let stops = Locked<[@Sendable () -> Void]>([])
                thread.remote.perform { loop in
                    let made = (0..<Race.count).map { index in kind.schedule(in: loop) { race.called(index) } }
                    stops.withLock { $0 = made }
                }
                guard eventually("they are called", { race.calls.value > 0 }) else { return }
                while stops.withLock({ $0.isEmpty }) { sched_yield() }
                let stop = stops.withLock { $0 }
                let threads = (1...3).map { distance in
                    PlainThread {
                        while let index = race.next(distance) {
                            stop[index]()
                            race.stopped[index].set()
                        }
                    }
                }
                for thread in threads { thread.join() }
                calls += race.calls.value
                late += race.late.value
            }
        }
        #expect(late == 0, "\(late) of \(calls) calls of a \(kind) began after it had been stopped")
        print("\(kind): \(calls) calls were raced, \(late) began late")
    }

    @Test(
        "an item that is stopped when its call has been decided, and has not begun, is not called",
        arguments: Stoppable.ofLoops.filter { $0 != .observer })
    func decided(_ kind: Stoppable) {
        let (decided, stopped) = (Flag(), Flag())
        let calls = Counter()
        let stop = Locked<(@Sendable () -> Void)?>(nil)
        withLoopThread { loop in
            loop.trace = { event in
                guard case .called = event, !stopped.isSet else { return }
                decided.set()
                _ = eventually("it is stopped", { stopped.isSet })
            }
            let made = kind.schedule(in: loop) { calls.add() }
            stop.withLock { $0 = made }
        } _: { thread in
            guard eventually("a call is decided", { decided.isSet }) else { return }
            stop.withLock { $0! }()
            stopped.set()
            let passed = Flag()
            thread.remote.perform { _ in passed.set() }
            _ = eventually("the pass ends", { passed.isSet })
        }
        #expect(calls.value == 0)
    }

    @Test(
        "a handler may wait for the thread that stops it, asleep or awake",
        arguments: Stoppable.allCases, [true, false])
    func handlerWaits(_ kind: Stoppable, asleep: Bool) {
        let (begun, stopped) = (Flag(), Flag())
        let calls = Counter()
        let stop = Locked<(@Sendable () -> Void)?>(nil)
        withLoopThread { loop in
            let made = kind.schedule(in: loop) {
                calls.add()
                begun.set()
                while !stopped.isSet { if asleep { usleep(1000) } }
            }
            stop.withLock { $0 = made }
        } _: { _ in
            guard eventually("it is called", { begun.isSet && stop.withLock { $0 != nil } }) else { return }
            stop.withLock { $0! }()
            stopped.set()
        }
        #expect(calls.value == 1)
    }

    @Test("a handler may stop itself, and the items below it on the stack", arguments: Stoppable.ofLoops)
    func sameThread(_ kind: Stoppable) {
        let calls = onThread {
            let loop = RunLoop.current
            let (outer, inner) = (Counter(), Counter())
            let stops = Locked<[@Sendable () -> Void]>([])
            let nested = Smuggled(loop)
            let stopOuter = kind.schedule(in: loop) {
                outer.add()
                let stopInner = kind.schedule(in: nested.value) {
                    inner.add()
                    for stop in stops.withLock({ $0 }) { stop() }
                    nested.value.stop()
                }
                stops.withLock { $0.append(stopInner) }
                nested.value.run(in: .default)
            }
            stops.withLock { $0.append(stopOuter) }
            loop.add(CustomSource(), forMode: .default)
            loop.run(in: .default, until: .distantPast)
            loop.run(in: .default, until: .distantPast)
            return (outer.value, inner.value)
        }
        #expect(calls == (1, 1))
    }

    @Test("on virtual time, another thread of the simulation stops it at a date", arguments: [false, true])
    func virtualTime(whileCalling: Bool) {
        let dates = Log<Int64>()
        withSimulation { simulation in
            let handle = Log<Timer.Remote>()
            let thread = LoopThread { loop in
                let timer = Timer(timeInterval: .seconds(1), repeats: true) { _ in
                    dates.append(loop.now.nanoseconds / 1_000_000_000)
                    guard whileCalling else { return }
                    loop.add(CustomSource(), forMode: .tracking)
                    loop.run(in: .tracking, until: loop.now + .milliseconds(700))
                }
                loop.add(timer, forMode: .default)
                handle.append(timer.remote)
            }
            simulation.loop.perform(afterDelay: .milliseconds(3500)) { handle.entries[0].invalidate() }
            simulation.loop.run(in: .default)
            thread.join()
        }
        #expect(dates.entries == [1, 2, 3])
    }

    @Test("an item whose loop has ended can still be stopped", arguments: Stoppable.ofLoops)
    func afterEnd(_ kind: Stoppable) {
        let calls = Counter()
        let stop = onThread { kind.schedule(in: .current) { calls.add() } }
        stop()
        stop()
        #expect(calls.value == 0)
    }

    @Test("an item that is in no loop, and is fired by hand, can be stopped meanwhile")
    func firedByHand() {
        let (begun, stopped) = (Flag(), Flag())
        let handle = Log<Timer.Remote>()
        let thread = PlainThread {
            let timer = Timer(timeInterval: .seconds(1), repeats: true) { _ in
                begun.set()
                while !stopped.isSet { sched_yield() }
            }
            handle.append(timer.remote)
            timer.fire()
            timer.fire()
        }
        guard eventually("it is called", { begun.isSet }) else { return }
        handle.entries[0].invalidate()
        stopped.set()
        thread.join()
    }
}
