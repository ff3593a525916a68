@_spi(Ports) import RunLoopCore
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@Suite("asyncAfter and its work items (R191)", .timeLimit(.minutes(15)))
struct WorkItemTests {
    @Test("a block is called once, in order of deadlines, then of calls", arguments: DeliveryPlace.allCases)
    func order(_ place: DeliveryPlace) {
        withSimulation { simulation in
            let log = Log<String>()
            // One thread, so that the order of deliveries is the order of calls.
            let pool = LoopThreadPool(name: "one", maximumThreads: 1)
            let queue = place == .loop ? DeliveryQueue.current : .pool(pool)
            for (name, delay) in [("c", 30), ("a", 10), ("d", 30), ("b", 20), ("e", 30)] {
                queue.asyncAfter(.milliseconds(delay)) { log.note(name, simulation) }
            }
            simulation.advance(by: .milliseconds(100))
            #expect(log.entries == ["10: a", "20: b", "30: c", "30: d", "30: e"])
        }
    }

    @Test("a block is called in whatever mode the loop runs, and keeps that run going")
    func anyMode() {
        withSimulation { simulation in
            let log = Log<String>()
            let loop = simulation.loop
            DeliveryQueue.main.asyncAfter(.milliseconds(10)) { log.note("queue", simulation) }
            loop.asyncAfter(.milliseconds(20)) { log("\(loop.now.ms): loop in \(loop.currentMode!.name)") }
            #expect(loop.run(in: .tracking) == .finished)
            #expect(log.entries == ["10: queue", "20: loop in \(RunLoop.Mode.tracking.name)"])
        }
    }

    @Test("a time in the past means as soon as possible, never at once", arguments: DeliveryPlace.allCases)
    func past(_ place: DeliveryPlace) {
        withSimulation { simulation in
            let log = Log<String>()
            simulation.advance(by: .milliseconds(50))
            let items = [
                place.queue.asyncAfter(.zero) { log.note("zero", simulation) },
                place.queue.asyncAfter(.milliseconds(-500)) { log.note("negative", simulation) },
                place.queue.asyncAfter(deadline: .distantPast) { log.note("distantPast", simulation) },
            ]
            #expect(log.entries == [])
            #expect(items.map(\.isPending) == [true, true, true])
            simulation.advance(by: .zero)
            #expect(log.entries.sorted() == ["50: distantPast", "50: negative", "50: zero"])
            #expect(items.map(\.isPending) == [false, false, false])
            #expect(items.map(\.isCancelled) == [false, false, false])
        }
    }

    @Test("distantFuture means never, keeps no run going, and the block is released", arguments: DeliveryPlace.allCases)
    func never(_ place: DeliveryPlace) {
        withSimulation { simulation in
            let released = Counter()
            func post(_ delay: Duration?) -> WorkItem {
                let token = Token { released.add() }
                guard let delay else { return place.queue.asyncAfter(deadline: .distantFuture) { token.touch() } }
                return place.queue.asyncAfter(delay) { token.touch() }
            }
            let items = [post(nil), post(Duration(secondsComponent: .max, attosecondsComponent: 0))]
            #expect(simulation.runUntilIdle() == .done)
            #expect(simulation.loop.run(in: .default) == .finished)
            #expect(items.map(\.isPending) == [false, false])
            #expect(items.map(\.isCancelled) == [false, false])
            #expect(released.value == 2)
        }
    }

    @Test(
        "an item cancelled before its time is never called, and its block is released",
        arguments: DeliveryPlace.allCases)
    func cancelBefore(_ place: DeliveryPlace) {
        withSimulation { simulation in
            let log = Log<String>()
            func post() -> WorkItem {
                let token = Token { log("released") }
                return place.queue.asyncAfter(.milliseconds(10)) {
                    token.touch()
                    log("called")
                }
            }
            let item = post()
            simulation.advance(by: .milliseconds(9))
            item.cancel()
            item.cancel()
            #expect(item.isCancelled && !item.isPending)
            // On the item's own thread at once.
            if place == .loop { #expect(log.entries == ["released"]) }
            simulation.advance(by: .milliseconds(20))
            #expect(log.entries == ["released"])
        }
    }

    @Test(
        "cancelled after, and inside of the block: it was called, and nothing happens",
        arguments: DeliveryPlace.allCases)
    func cancelAfter(_ place: DeliveryPlace) {
        withSimulation { simulation in
            let log = Log<String>()
            let box = Locked<WorkItem?>(nil)
            func post() {
                let token = Token { log("released") }
                let item = place.queue.asyncAfter(.milliseconds(10)) {
                    let item = box.withLock { $0! }
                    #expect(!item.isPending)
                    #expect(!item.isCancelled)
                    item.cancel()
                    simulation.spend(.milliseconds(5))
                    token.touch()
                    log.note("end", simulation)
                }
                box.withLock { $0 = item }
            }
            post()
            simulation.advance(by: .milliseconds(20))
            #expect(log.entries == ["15: end", "released"])
            let item = box.withLock { exchange(&$0, with: nil)! }
            item.cancel()
            #expect(item.isCancelled)
        }
    }

    @Test("the block is released when it has been called, although the item is kept", arguments: DeliveryPlace.allCases)
    func releasedAfterCall(_ place: DeliveryPlace) {
        withSimulation { simulation in
            let log = Log<String>()
            func post() -> WorkItem {
                let token = Token { log("released") }
                return place.queue.asyncAfter(.milliseconds(10)) {
                    token.touch()
                    log("called")
                }
            }
            let item = post()
            simulation.advance(by: .milliseconds(20))
            #expect(log.entries == ["called", "released"])
            withExtendedLifetime(item) {}
        }
    }

    @Test("an item that is not kept is still called, and released", arguments: DeliveryPlace.allCases)
    func notKept(_ place: DeliveryPlace) {
        withSimulation { simulation in
            let log = Log<String>()
            func post() {
                let token = Token { log("released") }
                place.queue.asyncAfter(.milliseconds(10)) {
                    token.touch()
                    log("called")
                }
            }
            post()
            simulation.advance(by: .milliseconds(9))
            #expect(log.entries == [])
            simulation.advance(by: .milliseconds(1))
            #expect(log.entries == ["called", "released"])
        }
    }

    @Test("a block may post and cancel others, also such as are due at the same time")
    func cancelDue() {
        withSimulation { simulation in
            let log = Log<String>()
            let others = Log<WorkItem>()
            let queue = DeliveryQueue.current
            queue.asyncAfter(.milliseconds(10)) {
                log("first")
                for item in others.entries { item.cancel() }
                queue.asyncAfter(.zero) { log.note("posted", simulation) }
            }
            for _ in 0..<3 {
                let item = queue.asyncAfter(.milliseconds(10)) { log("cancelled") }
                others.append(item)
            }
            simulation.advance(by: .milliseconds(10))
            #expect(log.entries == ["first", "10: posted"])
        }
    }

    @Test("posted and cancelled from other threads")
    func otherThreads() {
        withSimulation { simulation in
            let log = Log<String>()
            let main = DeliveryQueue.main
            let items = Locked<[WorkItem]>([])
            let thread = LoopThread(name: "other") { loop in
                let mine = [10, 20, 30].map { delay in
                    main.asyncAfter(.milliseconds(delay)) { log.note("\(delay)", simulation) }
                }
                items.withLock { $0 = mine }
                loop.asyncAfter(.milliseconds(25)) { mine[2].cancel() }
            }
            simulation.advance(to: ms(15))
            items.withLock { $0[1] }.cancel()
            simulation.advance(to: ms(100))
            #expect(log.entries == ["10: 10"])
            thread.join()
        }
    }

    @Test("on the real clock no block is early, and each is called once")
    func real() {
        let early = Counter()
        let calls = Counter()
        let pool = LoopThreadPool(name: "real", maximumThreads: 3)
        let queue = DeliveryQueue.pool(pool)
        for number in 0..<200 {
            let deadline = queue.now + .microseconds(number * 53)
            queue.asyncAfter(deadline: deadline, leeway: .microseconds(number % 3 * 400)) {
                if queue.now < deadline { early.add() }
                calls.add()
            }
        }
        _ = eventually("all are called") { calls.value == 200 }
        pool.stop()
        pool.join()
        #expect(calls.value == 200)
        #expect(early.value == 0)
    }
}
