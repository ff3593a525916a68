import Glibc
@_spi(Ports) import RunLoopCore
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@Suite("Objects that timer sources keep, and the threads that release them", .timeLimit(.minutes(15)))
struct TimerSourceOwnershipTests {
    /// An object that logs the thread on which it was released.
    private final class Witness {
        let log: Log<UInt>
        init(_ log: Log<UInt>) { self.log = log }
        deinit { log.append(threadNumber()) }
        func touch() {}
    }

    /// The actions of another thread on a source with loop-bound handlers.
    enum Deed: String, CaseIterable, Sendable {
        case cancel, cancelWithHandler, replace, replaceByNothing, release, releaseCancelled
    }

    @Test(
        "loop-bound handlers are released on the loop's thread, regardless of another thread's actions",
        arguments: Deed.allCases)
    func loopBound(_ deed: Deed) {
        let releases = Log<UInt>()
        let owner = Log<UInt>()
        let box = Locked<TimerSource?>(nil)
        let thread = LoopThread(name: "owner") { loop in
            owner.append(threadNumber())
            loop.add(CustomSource(), forMode: .default)
            let source = TimerSource(queue: .loop(loop.remote))
            source.setEventHandler(on: loop) { [witness = Witness(releases)] _ in witness.touch() }
            if deed == .cancelWithHandler || deed == .releaseCancelled {
                source.setCancelHandler(on: loop) { [witness = Witness(releases)] in witness.touch() }
            }
            source.schedule(after: .milliseconds(1), repeating: .milliseconds(1))
            source.activate()
            box.withLock { $0 = source }
        }
        _ = eventually("the source is there") { box.withLock { $0 != nil } }
        var source = box.withLock { exchange(&$0, with: nil) }
        switch deed {
        case .cancel, .cancelWithHandler: source!.cancel()
        case .replace: source!.setEventHandler { _ in }
        case .replaceByNothing: source!.setEventHandler(nil)
        case .release: break
        case .releaseCancelled:
            source!.suspend()
            source!.cancel()
        }
        if deed == .release || deed == .releaseCancelled { source = nil }
        let expected = deed == .cancelWithHandler || deed == .releaseCancelled ? 2 : 1
        _ = eventually("all is released") { releases.entries.count == expected }
        #expect(Set(releases.entries) == Set(owner.entries))
        thread.stop()
        thread.join()
        #expect(releases.entries.count == expected)
        withExtendedLifetime(source) {}
    }

    @Test("cancel on the loop releases the handler before it returns, unless it runs")
    func cancelLetsGo() {
        withSimulation { simulation in
            let log = Log<String>()
            let source = TimerSource(queue: .current)
            func setHandler() {
                let token = Token { log("released") }
                source.setEventHandler { _ in token.touch() }
            }
            setHandler()
            source.schedule(after: .milliseconds(10), repeating: .milliseconds(10))
            source.activate()
            simulation.advance(by: .milliseconds(10))
            #expect(log.entries == [])
            source.cancel()
            log("returned")
            #expect(log.entries == ["released", "returned"])
        }
    }

    @Test("replacing the handler releases the old one before it returns, unless it runs")
    func replaceLetsGo() {
        withSimulation { simulation in
            let log = Log<String>()
            let source = TimerSource(queue: .current)
            func setHandler(_ name: String, replacesItself: Bool = false) {
                let token = Token { log("\(name) released") }
                source.setEventHandler { source in
                    if replacesItself { source.setEventHandler(nil) }
                    token.touch()
                    log("\(name) ends")
                }
            }
            setHandler("first")
            setHandler("second", replacesItself: true)
            #expect(log.entries == ["first released"])
            source.schedule(after: .milliseconds(10), repeating: .milliseconds(10))
            source.activate()
            simulation.advance(by: .milliseconds(30))
            #expect(log.entries == ["first released", "second ends", "second released"])
        }
    }

    @Test("handlers of an object that has its source cancelled in its deinit")
    func cancelInDeinit() {
        withSimulation { simulation in
            let log = Log<String>()
            final class Owner: Sendable {
                let source: TimerSource
                let log: Log<String>
                init(_ queue: DeliveryQueue, _ log: Log<String>) {
                    self.log = log
                    source = TimerSource(queue: queue)
                    source.setEventHandler { [weak self] source in if self != nil { log.note(source) } }
                    source.setCancelHandler { log("cancelled") }
                    source.schedule(after: .milliseconds(10), repeating: .milliseconds(10))
                    source.activate()
                }
                deinit {
                    source.cancel()
                    log("deinit")
                }
            }
            var owner: Owner? = Owner(.current, log)
            simulation.advance(by: .milliseconds(25))
            withExtendedLifetime(owner) {}
            owner = nil
            simulation.advance(by: .milliseconds(25))
            #expect(log.entries == ["10: 1", "20: 1", "deinit", "cancelled"])
        }
    }

    // MARK: The end of a loop

    @Test("when the loop ends its sources release their handlers on its thread, uncalled")
    func loopEnds() {
        let releases = Log<UInt>()
        let owner = Log<UInt>()
        let called = Counter()
        let sources = Log<TimerSource>()
        let thread = LoopThread(name: "owner") { loop in
            owner.append(threadNumber())
            for number in 0..<4 {
                let source = TimerSource(queue: .loop(loop.remote))
                source.setEventHandler(on: loop) { [witness = Witness(releases)] _ in
                    witness.touch()
                    called.add()
                }
                source.setCancelHandler(on: loop) { called.add() }
                source.schedule(after: .seconds(1000), repeating: .seconds(1000))
                source.activate()
                if number == 1 { source.suspend() }
                sources.append(source)
            }
        }
        thread.stop()
        thread.join()
        #expect(releases.entries == Array(repeating: owner.entries[0], count: 4))
        #expect(called.value == 0)
        // The sources may still be called, and do nothing.
        for source in sources.entries {
            source.schedule(after: .zero, repeating: .milliseconds(1))
            source.resume()
            source.suspend()
            source.resume()
            source.setEventHandler { _ in called.add() }
            source.activate()
            source.cancel()
            #expect(source.isCancelled)
        }
        #expect(called.value == 0)
    }

    @Test("objects that a loop's end releases may cancel, schedule and release other sources and timers")
    func loopEndsWithDeinits() {
        let log = Log<String>()
        withSimulation { simulation in
            for number in 0..<6 {
                // The handler of each source keeps the next one, in both directions.
                let source = TimerSource(queue: .current)
                let timer = Timer(timeInterval: .seconds(100), repeats: true) { _ in }
                simulation.loop.add(timer, forMode: .common)
                let other = TimerSource(queue: .current)
                for source in [source, other] {
                    source.schedule(after: .seconds(100), repeating: .seconds(100))
                    source.activate()
                }
                let carried = Smuggled((other, timer, simulation.loop))
                let token = Token {
                    let (other, timer, loop) = carried.value
                    other.schedule(after: .seconds(3))
                    other.suspend()
                    if number % 2 == 0 { other.cancel() }
                    timer.invalidate()
                    loop.perform {}
                    log("\(number)")
                }
                source.setEventHandler { _ in token.touch() }
                // The source keeps itself.
                other.setEventHandler { _ in _ = source.isCancelled }
                DeliveryQueue.current.asyncAfter(.seconds(5)) { _ = other.isCancelled }
            }
            simulation.advance(by: .seconds(1))
        }
        #expect(log.entries.sorted() == (0..<6).map(String.init))
    }

    @Test("a block for a loop that has ended is released at once, and never called")
    func blockForEndedLoop() {
        let released = Counter()
        let thread = LoopThread { _ in }
        thread.join()
        func post() -> WorkItem {
            let token = Token { released.add() }
            return DeliveryQueue.thread(thread).asyncAfter(.zero) { token.touch() }
        }
        let item = post()
        #expect(released.value == 1)
        #expect(!item.isPending)
    }

    @Test("a source that its loop never knew releases its handlers when it is cancelled after the loop's end")
    func unknownToEndedLoop() {
        let released = Counter()
        let thread = LoopThread { _ in }
        thread.join()
        let source = TimerSource(queue: .thread(thread))
        for _ in 0..<2 {
            let tokens = (Token { released.add() }, Token { released.add() })
            // Cycles, which only the cancel can break.
            source.setEventHandler { _ in withExtendedLifetime((source, tokens.0)) {} }
            source.setCancelHandler { withExtendedLifetime((source, tokens.1)) {} }
        }
        source.schedule(after: .zero)
        // The former handlers have been released.
        #expect(released.value == 2)
        source.cancel()
        #expect(released.value == 4)
    }

    @Test("a handler that is replaced while its loop makes its last pass is released")
    func replacedInLastPass() {
        let released = Counter()
        let thread = LoopThread { $0.add(CustomSource(), forMode: .default) }
        let source = TimerSource(queue: .thread(thread))
        source.setEventHandler { [token = Token { released.add() }] _ in token.touch() }
        source.schedule(after: .seconds(1000))
        source.activate()
        @Sendable func step() {
            // A loop that accepts nothing more is in its last pass.
            guard !thread.remote.perform({ _ in step() }) else { return }
            PlainThread { source.setEventHandler(nil) }.join()
            source.cancel()
        }
        thread.remote.perform { _ in
            thread.stop()
            step()
        }
        thread.join()
        #expect(released.value == 1)
    }

    @Test("blocks posted while a loop ends are called or released, and none stays")
    func blocksAgainstEnd() {
        for _ in 0..<300 {
            let released = Counter()
            let thread = LoopThread { $0.add(CustomSource(), forMode: .default) }
            let senders = (0..<2).map { number in
                PlainThread {
                    for _ in 0..<20 {
                        let token = Token { released.add() }
                        DeliveryQueue.thread(thread).asyncAfter(.seconds(number)) { token.touch() }
                    }
                }
            }
            sched_yield()
            thread.stop()
            thread.join()
            for sender in senders { sender.join() }
            guard released.value == 40 else {
                Issue.record("\(40 - released.value) blocks were not let go of")
                return
            }
        }
    }

    @Test("blocks for a loop that never runs go with it")
    func blocksForLoopThatDoesNotRun() {
        let released = Counter()
        onThread {
            let queue = DeliveryQueue.current
            PlainThread {
                for _ in 0..<10 {
                    let token = Token { released.add() }
                    queue.asyncAfter(.seconds(1)) { token.touch() }
                }
            }.join()
        }
        #expect(released.value == 10)
    }

    @Test("a block for the pool that is posted right before the simulation ends is released")
    func blockAtEndOfSimulation() {
        let released = Counter()
        let called = Counter()
        for _ in 0..<20 {
            withSimulation { _ in
                for _ in 0..<3 {
                    let token = Token { released.add() }
                    DeliveryQueue.background.asyncAfter(.zero) {
                        token.touch()
                        called.add()
                    }
                }
            }
        }
        #expect(released.value == 60)
        #expect([0, 60].contains(called.value))
    }

    @Test("an object that goes with the simulation may still ask the background and start a thread, which end too")
    func deinitAtEndOfSimulation() {
        let released = Counter()
        let ended = Log<LoopThread>()
        withSimulation { simulation in
            let token = Token {
                let inner = Token { released.add() }
                DeliveryQueue.background.asyncAfter(.zero) { inner.touch() }
                ended.append(LoopThread { $0.add(CustomSource(), forMode: .default) })
                released.add()
            }
            simulation.loop.asyncAfter(.seconds(1)) { token.touch() }
        }
        #expect(released.value == 2)
        #expect(ended.entries[0].remote.perform { _ in } == false)
    }

    @Test("threads started by objects that end with the simulation's threads end too, to any depth")
    func threadsAtEndOfSimulation() {
        let threads = Log<LoopThread>()
        @Sendable func start(_ depth: Int) {
            let token = Token { if depth > 0 { start(depth - 1) } }
            threads.append(
                LoopThread { loop in
                    loop.add(CustomSource(), forMode: .default)
                    loop.perform(inModes: .tracking) { token.touch() }
                })
        }
        withSimulation { _ in start(4) }
        #expect(threads.entries.map { $0.remote.perform { _ in } } == Array(repeating: false, count: 5))
    }

    @Test("a handler for a foreign loop is refused with a sentence")
    func foreignLoop() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            setForeignHandler()
        }
        let isSaid = says("a handler that stays on a loop's thread needs a source whose queue is that loop", result)
        #expect(isSaid)
    }
}

private func setForeignHandler() {
    withSimulation { simulation in
        TimerSource(queue: .background).setEventHandler(on: simulation.loop) { _ in }
    }
}
