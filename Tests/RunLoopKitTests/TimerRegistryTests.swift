@_spi(Ports) import RunLoopCore
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

/// An object that an action keeps, and that logs its end.
private final class Owner: Sendable {
    let log: Log<String>

    init(_ log: Log<String>) {
        self.log = log
    }

    deinit {
        log("deinit")
    }
}

@Suite("A registry keeps a timer for each name", .timeLimit(.minutes(15)))
struct TimerRegistryTests {
    @Test(
        "X14: the same name again before the first fire: only the second schedule and action take effect",
        arguments: DeliveryPlace.allCases)
    func x14(_ place: DeliveryPlace) throws {
        try withSimulation { simulation in
            let log = Log<String>()
            let timers = TimerRegistry()
            try timers.schedule("t", interval: .seconds(2), queue: place.queue, repeats: false) { log("first") }
            simulation.advance(by: .seconds(1))
            try timers.schedule("t", interval: .seconds(2), queue: place.queue, repeats: false) {
                log.note("second", simulation)
            }
            simulation.advance(by: .seconds(10))
            #expect(log.entries == ["3000: second"])
            #expect(timers.names == [])
        }
    }

    @Test("repeating timers continue until their name is cancelled", arguments: DeliveryPlace.allCases)
    func repeating(_ place: DeliveryPlace) throws {
        try withSimulation { simulation in
            let log = Log<String>()
            let timers = TimerRegistry()
            for (name, interval) in [("b", 20), ("a", 30)] {
                try timers.schedule(name, interval: .milliseconds(interval), queue: place.queue, repeats: true) {
                    log.note(name, simulation)
                }
            }
            #expect(timers.names == ["a", "b"])
            simulation.advance(to: ms(50))
            #expect(timers.cancel("b"))
            #expect(!timers.cancel("b"))
            simulation.advance(to: ms(95))
            #expect(log.entries == ["20: b", "30: a", "40: b", "60: a", "90: a"])
            #expect(timers.names == ["a"])
        }
    }

    @Test(
        "fireInstantly also acts at once, asynchronously, if it repeats; a one-shot waits",
        arguments: DeliveryPlace.allCases)
    func instantly(_ place: DeliveryPlace) throws {
        try withSimulation { simulation in
            let log = Log<String>()
            let timers = TimerRegistry()
            for (name, repeats) in [("repeating", true), ("once", false)] {
                try timers.schedule(
                    name, interval: .milliseconds(50), queue: place.queue, repeats: repeats, fireInstantly: true
                ) { log.note(name, simulation) }
            }
            #expect(log.entries == [])
            simulation.advance(to: ms(110))
            #expect(
                log.entries.filter { $0.contains("repeating") } == ["0: repeating", "50: repeating", "100: repeating"])
            #expect(log.entries.filter { $0.contains("once") } == ["50: once"])
        }
    }

    @Test("the background is the queue unless another is given")
    func background() throws {
        try withSimulation { simulation in
            let log = Log<String>()
            let timers = TimerRegistry()
            try timers.schedule("t", interval: .milliseconds(10), repeats: true) { log.note("tick", simulation) }
            simulation.spend(.milliseconds(35))
            #expect(log.entries == ["10: tick", "20: tick", "30: tick"])
        }
    }

    @Test(
        "the name of a one-shot is free when its action begins, and may be used in it",
        arguments: DeliveryPlace.allCases)
    func freeName(_ place: DeliveryPlace) throws {
        try withSimulation { simulation in
            let log = Log<String>()
            let timers = TimerRegistry()
            let queue = place.queue
            try timers.schedule("t", interval: .milliseconds(10), queue: queue, repeats: false) { [weak timers] in
                log.note("first \(timers!.names)", simulation)
                #expect(!timers!.cancel("t"))
                try? timers!.schedule("t", interval: .milliseconds(5), queue: queue, repeats: false) {
                    log.note("second", simulation)
                }
                simulation.spend(.milliseconds(20))
                log.note("end \(timers!.names)", simulation)
            }
            simulation.advance(by: .milliseconds(100))
            // On the pool the second one has a thread of its own.
            #expect(
                log.entries.sorted()
                    == (place == .loop
                        ? ["10: first []", "30: end [\"t\"]", "30: second"]
                        : ["10: first []", "15: second", "30: end []"]))
            #expect(timers.names == [])
        }
    }

    @Test(
        "a repeating timer that schedules its own name in its action has the new schedule and action",
        arguments: DeliveryPlace.allCases)
    func ownName(_ place: DeliveryPlace) throws {
        try withSimulation { simulation in
            let log = Log<String>()
            let timers = TimerRegistry()
            let queue = place.queue
            try timers.schedule("t", interval: .milliseconds(10), queue: queue, repeats: true) { [weak timers] in
                log.note("first", simulation)
                try? timers!.schedule("t", interval: .milliseconds(30), queue: queue, repeats: true) {
                    log.note("second", simulation)
                }
                simulation.spend(.milliseconds(25))
            }
            simulation.advance(to: ms(75))
            #expect(log.entries == ["10: first", "40: second", "70: second"])
        }
    }

    @Test(
        "a timer that cancels its name in its action finishes the action, and is released after it",
        arguments: DeliveryPlace.allCases)
    func cancelInAction(_ place: DeliveryPlace) throws {
        try withSimulation { simulation in
            let log = Log<String>()
            let timers = TimerRegistry()
            func schedule() throws {
                let token = Token { log("released") }
                try timers.schedule("t", interval: .milliseconds(10), queue: place.queue, repeats: true) {
                    [weak timers] in
                    #expect(timers!.cancel("t"))
                    simulation.spend(.milliseconds(25))
                    token.touch()
                    log.note("end", simulation)
                }
            }
            try schedule()
            simulation.advance(to: ms(100))
            #expect(log.entries == ["35: end", "released"])
        }
    }

    @Test("another queue for the same name takes the place of the old one")
    func replacedQueue() throws {
        try withSimulation { simulation in
            let log = Log<String>()
            let timers = TimerRegistry()
            func schedule(_ name: String, _ queue: DeliveryQueue) throws {
                let token = Token { log("\(name) released") }
                try timers.schedule("t", interval: .milliseconds(10), queue: queue, repeats: true) {
                    token.touch()
                    log.note(name, simulation)
                }
            }
            try schedule("loop", .main)
            simulation.advance(to: ms(15))
            try schedule("pool", .background)
            simulation.advance(to: ms(16))
            #expect(log.entries == ["10: loop", "loop released"])
            simulation.spend(.milliseconds(10))
            #expect(log.entries == ["10: loop", "loop released", "25: pool"])
            try schedule("again", .main)
            simulation.advance(to: ms(40))
            #expect(timers.names == ["t"])
            #expect(log.entries == ["10: loop", "loop released", "25: pool", "pool released", "36: again"])
        }
    }

    @Test("an old action that is replaced is released, and so is a cancelled one", arguments: DeliveryPlace.allCases)
    func release(_ place: DeliveryPlace) throws {
        try withSimulation { simulation in
            let log = Log<String>()
            let timers = TimerRegistry()
            func schedule(_ name: String) throws {
                let token = Token { log(name) }
                try timers.schedule("t", interval: .milliseconds(10), queue: place.queue, repeats: true) {
                    token.touch()
                }
            }
            try schedule("first")
            try schedule("second")
            #expect(log.entries == ["first"])
            timers.cancelAll()
            #expect(log.entries == ["first", "second"])
            #expect(timers.names == [])
        }
    }

    @Test("when the registry is released its timers stop and release their actions", arguments: DeliveryPlace.allCases)
    func deinitialized(_ place: DeliveryPlace) throws {
        try withSimulation { simulation in
            let log = Log<String>()
            func make() throws -> TimerRegistry {
                let timers = TimerRegistry()
                for name in ["a", "b"] {
                    let token = Token { log("released") }
                    try timers.schedule(name, interval: .milliseconds(10), queue: place.queue, repeats: true) {
                        token.touch()
                        log("called")
                    }
                }
                return timers
            }
            var timers: TimerRegistry? = try make()
            let watch = Weak(timers)
            simulation.advance(to: ms(10))
            timers = nil
            #expect(watch.isGone)
            simulation.advance(to: ms(100))
            #expect(log.entries == ["called", "called", "released", "released"])
        }
    }

    @Test("the last reference to a registry may go in an action", arguments: DeliveryPlace.allCases)
    func deinitializedInAction(_ place: DeliveryPlace) throws {
        try withSimulation { simulation in
            let log = Log<String>()
            let box = Locked<TimerRegistry?>(TimerRegistry())
            func schedule(_ timers: TimerRegistry) throws -> Weak<TimerRegistry> {
                try timers.schedule("t", interval: .milliseconds(10), queue: place.queue, repeats: true) {
                    let last = box.withLock { exchange(&$0, with: nil) }
                    withExtendedLifetime(last) {}
                    log("called")
                }
                return Weak(timers)
            }
            let watch = try schedule(box.withLock { $0! })
            simulation.advance(to: ms(100))
            #expect(log.entries == ["called"])
            #expect(watch.isGone)
        }
    }

    @Test("a captured object may call the registry in its deinit", arguments: DeliveryPlace.allCases)
    func deinitCallsRegistry(_ place: DeliveryPlace) throws {
        try withSimulation { simulation in
            let log = Log<String>()
            let timers = TimerRegistry()
            let queue = place.queue
            func schedule(_ name: String) throws {
                let token = Token { [weak timers] in
                    log("\(name) released")
                    timers?.cancel("other \(name)")
                    try? timers?.schedule("from \(name)", interval: .seconds(1), queue: queue, repeats: false) {}
                }
                try timers.schedule("t", interval: .milliseconds(10), queue: queue, repeats: true) { token.touch() }
                try timers.schedule("other \(name)", interval: .seconds(1), queue: queue, repeats: true) {}
            }
            try schedule("a")
            try schedule("b")
            #expect(timers.names == ["from a", "other b", "t"])
            timers.cancel("t")
            #expect(timers.names == ["from a", "from b"])
            try schedule("c")
            timers.cancelAll()
            #expect(timers.names == ["from c"])
            #expect(log.entries == ["a released", "b released", "c released"])
        }
    }

    @Test("invalid arguments are refused with a sentence, and change nothing", arguments: DeliveryPlace.allCases)
    func errors(_ place: DeliveryPlace) throws {
        try withSimulation { simulation in
            let log = Log<String>()
            let timers = TimerRegistry()
            let queue = place.queue
            try timers.schedule("t", interval: .milliseconds(10), queue: queue, repeats: true) {
                log.note("tick", simulation)
            }
            let action: @Sendable () -> Void = { log("wrong") }
            #expect(throws: TimerSourceError.emptyName) {
                try timers.schedule("", interval: .seconds(1), queue: queue, repeats: true, action: action)
            }
            #expect(throws: TimerSourceError.nonPositiveInterval(.zero)) {
                try timers.schedule("t", interval: .zero, queue: queue, repeats: true, action: action)
            }
            #expect(throws: TimerSourceError.negativeStart(.seconds(-1))) {
                try timers.schedule("t", interval: .seconds(-1), queue: queue, repeats: false, action: action)
            }
            try timers.schedule("now", interval: .zero, queue: queue, repeats: false) { log.note("now", simulation) }
            simulation.advance(to: ms(25))
            #expect(log.entries == ["0: now", "10: tick", "20: tick"])
            let errors: [TimerSourceError] = [
                .emptyName, .nonPositiveInterval(.zero), .negativeStart(.seconds(-1)),
            ]
            #expect(Set(errors.map(\.description)).count == 3)
        }
    }

    @Test("threads that schedule and cancel the same names at random leave nothing behind")
    func threads() {
        let alive = Counter()
        func churn() {
            let timers = TimerRegistry()
            let threads = (0..<4).map { number in
                PlainThread {
                    var generator = SeededGenerator(seed: UInt64(number))
                    for _ in 0..<500 {
                        let name = "\(Int.random(in: 0..<3, using: &generator))"
                        alive.add(1)
                        let token = Token { alive.add(-1) }
                        let repeats = Bool.random(using: &generator)
                        try? timers.schedule(
                            name, interval: .microseconds(Int.random(in: 1...300, using: &generator)),
                            repeats: repeats, fireInstantly: true
                        ) { token.touch() }
                        if Int.random(in: 0..<4, using: &generator) == 0 { timers.cancel(name) }
                    }
                }
            }
            for thread in threads { thread.join() }
        }
        churn()
        _ = eventually("all actions are let go of") { alive.value == 0 }
    }

    @Test("a manager's life: schedule, replace, a one-shot that frees its name, cancel; owners go with their actions")
    func life() throws {
        try withSimulation { simulation in
            let log = Log<String>()
            let manager = TimerRegistry()
            func schedule(_ name: String, repeats: Bool, instantly: Bool = false) throws -> Weak<Owner> {
                let owner = Owner(log)
                try manager.schedule(
                    name, interval: .seconds(2), queue: .main, repeats: repeats, fireInstantly: instantly
                ) { owner.log.note("\(name) \(manager.names)", simulation) }
                return Weak(owner)
            }
            let first = try schedule("poll", repeats: true, instantly: true)
            simulation.advance(to: ms(3000))
            let second = try schedule("poll", repeats: true)
            #expect(first.isGone)
            let once = try schedule("once", repeats: false)
            simulation.advance(to: ms(5000))
            #expect(once.isGone)
            manager.cancel("poll")
            #expect(second.isGone)
            simulation.advance(to: ms(20_000))
            #expect(
                log.entries == [
                    "0: poll [\"poll\"]", "2000: poll [\"poll\"]", "deinit", "5000: poll [\"once\", \"poll\"]",
                    "5000: once [\"poll\"]", "deinit", "deinit",
                ])
        }
    }
}
