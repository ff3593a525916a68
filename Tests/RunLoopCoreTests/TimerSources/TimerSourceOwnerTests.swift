@_spi(Ports) import RunLoopCore
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

/// The usual owner of a timer source: an object that counts ticks, and cancels in its deinit.
private final class Owner: Sendable {
    let log: Log<String>
    private let number = Counter()
    private let timer = Locked<TimerSource?>(nil)

    init(_ log: Log<String>) {
        self.log = log
    }

    deinit {
        log("deinit")
        timer.withLock { $0 }?.cancel()
    }

    var num: Int { number.value }

    func keep(_ source: TimerSource) {
        timer.withLock { $0 = source }
    }

    func tick(_ source: TimerSource) {
        log("\(source.queue.now.ms): num = \(number.value)")
        number.add()
    }
}

@Suite("A timer source is cancelled by its owner, and late only when its queue is busy", .timeLimit(.minutes(15)))
struct TimerSourceOwnerTests {
    /// Makes a source that fires every 2 s from +2 s on.
    private func source(_ queue: DeliveryQueue, _ handler: @escaping @Sendable (TimerSource) -> Void) -> TimerSource {
        let source = TimerSource(queue: queue)
        source.schedule(after: .seconds(2), repeating: .seconds(2), leeway: .milliseconds(10))
        source.setEventHandler(handler)
        source.resume()
        return source
    }

    @Test("X8: on the main queue, weak capture; the owner goes at once, cancels, and no tick follows")
    func x8() {
        withSimulation { simulation in
            let log = Log<String>()
            var owner: Owner? = Owner(log)
            owner!.keep(source(.main) { [weak owner] in owner?.tick($0) })
            let watch = Weak(owner)
            simulation.advance(to: ms(6900))
            #expect(!watch.isGone)
            owner = nil
            #expect(watch.isGone)
            simulation.advance(to: ms(20_000))
            #expect(log.entries == ["2000: num = 0", "4000: num = 1", "6000: num = 2", "deinit"])
            #expect(simulation.loop.run(in: .default) == .finished)
        }
    }

    @Test(
        "X9: strong capture; it runs on without its owner, cancels at num > 5, and deinit follows in that instant",
        arguments: DeliveryPlace.allCases)
    func x9(_ place: DeliveryPlace) {
        withSimulation { simulation in
            let log = Log<String>()
            func begin() -> Weak<Owner> {
                let owner = Owner(log)
                let timer = source(place.queue) { source in
                    owner.tick(source)
                    if owner.num > 5 {
                        source.cancel()
                        owner.log.note("cancel", simulation)
                    }
                }
                owner.keep(timer)
                return Weak(owner)
            }
            let watch = begin()
            simulation.advance(to: ms(11_999))
            #expect(!watch.isGone)
            simulation.advance(to: ms(12_000))
            #expect(watch.isGone)
            simulation.advance(to: ms(30_000))
            #expect(
                log.entries
                    == (0...5).map { "\(2000 + 2000 * $0): num = \($0)" } + ["12000: cancel", "deinit"])
        }
    }

    @Test("X10: a busy main loop delays a source on the main queue: one fire, then the grid")
    func x10() {
        withSimulation { simulation in
            let log = Log<String>()
            let timer = source(.main) { log.note($0) }
            DeliveryQueue.main.asyncAfter(.seconds(5)) { simulation.spend(.seconds(5.003)) }
            simulation.advance(to: ms(14_000))
            #expect(log.entries == ["2000: 1", "4000: 1", "10003: 3", "12000: 1", "14000: 1"])
            withExtendedLifetime(timer) {}
        }
    }

    @Test("X11: a busy main loop does not touch a source on a background queue")
    func x11() {
        withSimulation { simulation in
            let log = Log<String>()
            let timer = source(.background) { log.note($0) }
            DeliveryQueue.main.asyncAfter(.milliseconds(5001)) {
                log.note("begin delay", simulation)
                simulation.spend(.milliseconds(4001))
                log.note("end delay", simulation)
            }
            simulation.advance(to: ms(12_000))
            #expect(
                log.entries == [
                    "2000: 1", "4000: 1", "5001: begin delay", "6000: 1", "8000: 1", "9002: end delay", "10000: 1",
                    "12000: 1",
                ])
            withExtendedLifetime(timer) {}
        }
    }

    @Test("a drag does not touch it: it ticks in the tracking mode as well")
    func drag() {
        withSimulation { simulation in
            let log = Log<String>()
            let timer = source(.main) { log.note($0) }
            simulation.drag(from: ms(5085), until: ms(9596))
            simulation.advance(to: ms(12_000))
            #expect(log.entries == [2, 4, 6, 8, 10, 12].map { "\($0 * 1000): 1" })
            withExtendedLifetime(timer) {}
        }
    }

    @Test("a heavy handler of its own delays it on a background queue, too")
    func heavy() {
        withSimulation { simulation in
            let log = Log<String>()
            let timer = source(.background) { source in
                log.note(source)
                if log.entries.count == 1 { simulation.spend(.seconds(5)) }
            }
            simulation.advance(to: ms(10_000))
            #expect(log.entries == ["2000: 1", "7000: 2", "8000: 1", "10000: 1"])
            withExtendedLifetime(timer) {}
        }
    }
}

@Suite("A timer source releases its target or block, and refuses times that make no sense", .timeLimit(.minutes(15)))
struct TimerSourceFormTests {
    private final class Target: Sendable {
        let log: Log<String>
        init(_ log: Log<String>) { self.log = log }
        deinit { log("deinit") }
        func tick(_ source: TimerSource) { log.note(source) }
    }

    @Test("a block, to be fired by hand", arguments: DeliveryPlace.allCases)
    func block(_ place: DeliveryPlace) throws {
        try withSimulation { simulation in
            let log = Log<String>()
            let (start, interval) = (Duration.milliseconds(30), Duration.milliseconds(20))
            let source =
                place == .loop
                ? try TimerSource(start: start, interval: interval, repeats: true) { log.note($0) }
                : try TimerSource(start: start, interval: interval, queue: .background, repeats: true) { log.note($0) }
            simulation.advance(to: ms(10))
            #expect(log.entries == [])
            source.activate()
            simulation.advance(to: ms(60))
            source.cancel()
            simulation.advance(to: ms(200))
            #expect(log.entries == ["30: 1", "50: 1"])
        }
    }

    @Test("a block, started at once", arguments: DeliveryPlace.allCases)
    func scheduledBlock(_ place: DeliveryPlace) throws {
        try withSimulation { simulation in
            let log = Log<String>()
            let (start, interval) = (Duration.zero, Duration.milliseconds(20))
            var source: TimerSource? =
                place == .loop
                ? try .scheduled(start: start, interval: interval, repeats: true) { log.note($0) }
                : try .scheduled(start: start, interval: interval, queue: .background, repeats: true) { log.note($0) }
            simulation.advance(to: ms(50))
            #expect(log.entries == ["0: 1", "20: 1", "40: 1"])
            withExtendedLifetime(source) {}
            source = nil
            simulation.advance(to: ms(200))
            #expect(log.entries.count == 3)
        }
    }

    @Test(
        "a source that does not repeat cancels itself after its callback, and releases its block",
        arguments: DeliveryPlace.allCases)
    func once(_ place: DeliveryPlace) throws {
        try withSimulation { simulation in
            let log = Log<String>()
            func make() throws -> TimerSource {
                let token = Token { log("released") }
                let handler: @Sendable (TimerSource) -> Void = { source in
                    token.touch()
                    #expect(!source.isCancelled)
                    log.note(source)
                }
                // A source that does not repeat ignores its interval.
                return place == .loop
                    ? try .scheduled(start: .milliseconds(10), interval: .zero, repeats: false, handler: handler)
                    : try .scheduled(
                        start: .milliseconds(10), interval: .seconds(-1), queue: .background, repeats: false,
                        handler: handler)
            }
            let source = try make()
            simulation.advance(to: ms(100))
            #expect(log.entries == ["10: 1", "released"])
            #expect(source.isCancelled)
        }
    }

    @Test(
        "a weakly held target, fired by hand or started at once; when it goes the source cancels itself",
        arguments: DeliveryPlace.allCases, [true, false])
    func target(_ place: DeliveryPlace, isScheduled: Bool) throws {
        try withSimulation { simulation in
            let log = Log<String>()
            var target: Target? = Target(log)
            let duration = Duration.milliseconds(10)
            let source: TimerSource
            switch (place, isScheduled) {
            case (.loop, true):
                source = try .scheduled(
                    start: duration, interval: duration, weakTarget: target!, selector: Target.tick, repeats: true)
            case (.loop, false):
                source = try TimerSource(
                    start: duration, interval: duration, weakTarget: target!, selector: Target.tick, repeats: true)
            case (.pool, true):
                source = try .scheduled(
                    start: duration, interval: duration, queue: .background, weakTarget: target!,
                    selector: { target in { target.tick($0) } }, repeats: true)
            case (.pool, false):
                source = try TimerSource(
                    start: duration, interval: duration, queue: .background, weakTarget: target!,
                    selector: { target in { target.tick($0) } }, repeats: true)
            }
            if !isScheduled {
                simulation.advance(to: ms(5))
                #expect(log.entries == [])
                source.activate()
            }
            simulation.advance(to: ms(25))
            target = nil
            #expect(log.entries == ["10: 1", "20: 1", "deinit"])
            #expect(!source.isCancelled)
            simulation.advance(to: ms(30))
            #expect(source.isCancelled)
            simulation.advance(to: ms(60))
            #expect(log.entries == ["10: 1", "20: 1", "deinit"])
        }
    }

    @Test("a start below zero, and an interval of zero or less with repeats are refused")
    func errors() {
        withSimulation { simulation in
            let handler: @Sendable (TimerSource) -> Void = { _ in }
            func expect(_ error: TimerSourceError, _ start: Duration, _ interval: Duration, repeats: Bool) {
                #expect(throws: error) {
                    try TimerSource(start: start, interval: interval, repeats: repeats, handler: handler)
                }
                #expect(throws: error) {
                    try TimerSource.scheduled(
                        start: start, interval: interval, queue: .background, repeats: repeats, handler: handler)
                }
            }
            expect(.negativeStart(.nanoseconds(-1)), .nanoseconds(-1), .seconds(1), repeats: false)
            expect(.nonPositiveInterval(.zero), .zero, .zero, repeats: true)
            expect(.nonPositiveInterval(.seconds(-1)), .zero, .seconds(-1), repeats: true)
            #expect(throws: TimerSourceError.negativeStart(.seconds(-1))) {
                try TimerSource(
                    start: .seconds(-1), interval: .zero, weakTarget: Target(Log()), selector: Target.tick,
                    repeats: true)
            }
            #expect(simulation.loop.run(in: .default) == .finished)
        }
    }
}

@Suite("A scheduled source fires on its queue until it is cancelled", .timeLimit(.minutes(15)))
struct TimerSourceQueueTests {
    @Test("a block timer on main or on a given queue, repeating or not, that can be invalidated")
    func forms() throws {
        try withSimulation { simulation in
            let log = Log<String>()
            let thread = LoopThread(name: "own") { $0.add(CustomSource(), forMode: .default) }
            let queues = [("main", DeliveryQueue.main), ("background", .background), ("thread", .thread(thread))]
            var sources: [TimerSource] = []
            for (name, queue) in queues {
                for repeats in [true, false] {
                    sources.append(
                        try .scheduled(
                            start: .seconds(1), interval: .seconds(1), queue: queue, repeats: repeats
                        ) { _ in log.note("\(name) \(repeats)", simulation) })
                }
            }
            simulation.advance(to: ms(2500))
            for source in sources { source.cancel() }
            simulation.advance(to: ms(10_000))
            let once = queues.map { "1000: \($0.0) false" }
            let first = queues.map { "1000: \($0.0) true" }
            let second = queues.map { "2000: \($0.0) true" }
            #expect(log.entries.sorted() == (once + first + second).sorted())
            thread.stop()
            thread.join()
        }
    }
}

@Suite("A delayed block is called in every mode, and releases its owner", .timeLimit(.minutes(15)))
struct DelayedBlockTests {
    @Test(
        "a delayed block on the main queue, in every mode, and on the background; its owner goes with the block",
        arguments: DeliveryPlace.allCases)
    func after(_ place: DeliveryPlace) {
        withSimulation { simulation in
            let log = Log<String>()
            func post() -> Weak<Owner> {
                let owner = Owner(log)
                place.queue.asyncAfter(.seconds(5)) { owner.log.note("after", simulation) }
                return Weak(owner)
            }
            let watch = post()
            simulation.drag(from: ms(4000), until: ms(8000))
            simulation.advance(to: ms(3999))
            #expect(!watch.isGone)
            simulation.advance(to: ms(9000))
            #expect(watch.isGone)
            #expect(log.entries == ["5000: after", "deinit"])
        }
    }

    @Test("cancelling a delayed block releases its owner", arguments: DeliveryPlace.allCases)
    func cancelled(_ place: DeliveryPlace) {
        withSimulation { simulation in
            let log = Log<String>()
            func post() -> (WorkItem, Weak<Owner>) {
                let owner = Owner(log)
                let item = place.queue.asyncAfter(.seconds(5)) { owner.log.note("after", simulation) }
                return (item, Weak(owner))
            }
            let (item, watch) = post()
            simulation.advance(to: ms(3000))
            item.cancel()
            simulation.advance(to: ms(3000))
            #expect(watch.isGone)
            simulation.advance(to: ms(9000))
            #expect(log.entries == ["deinit"])
        }
    }
}
