@_spi(Ports) import RunLoopCore
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

/// R180–R189: suspending, cancelling, and releasing a source.
@Suite("Suspending, cancelling and releasing a timer source", .timeLimit(.minutes(15)))
struct TimerSourceLifeTests {
    // MARK: R180–R182

    @Test("suspensions nest, and one merged delivery follows the last resume (R180)", arguments: DeliveryPlace.allCases)
    func suspend(_ place: DeliveryPlace) {
        withSimulation { simulation in
            let log = Log<String>()
            let source = TimerSource(place.queue, log, after: 100, every: 100)
            simulation.advance(to: ms(150))
            source.suspend()
            source.suspend()
            simulation.advance(to: ms(350))
            source.resume()
            simulation.advance(to: ms(450))
            #expect(log.entries == ["100: 1"])
            source.resume()
            simulation.advance(to: ms(600))
            #expect(log.entries == ["100: 1", "450: 3", "500: 1", "600: 1"])
        }
    }

    @Test("a resume without a suspend is reported, from any thread", arguments: [true, false])
    func unmatchedResume(elsewhere: Bool) {
        withSimulation { simulation in
            let log = Log<String>()
            simulation.loop.trace = { if case .ignored(let what) = $0 { log(what) } }
            let source = TimerSource(queue: .loop(simulation.loop.remote), name: "tick")
            source.resume()
            source.suspend()
            source.resume()
            #expect(log.entries.isEmpty)
            if elsewhere { onThread { source.resume() } } else { source.resume() }
            simulation.advance(by: .zero)
            #expect(log.entries == ["timer source \"tick\" (\(source.origin)) was resumed, but it was not suspended"])
        }
    }

    @Test("a resume before anything was missed delivers nothing early (R180)", arguments: DeliveryPlace.allCases)
    func shortSuspension(_ place: DeliveryPlace) {
        withSimulation { simulation in
            let log = Log<String>()
            let source = TimerSource(place.queue, log, after: 100, every: 100)
            simulation.advance(to: ms(110))
            source.suspend()
            simulation.advance(to: ms(190))
            source.resume()
            simulation.advance(to: ms(250))
            #expect(log.entries == ["100: 1", "200: 1"])
        }
    }

    @Test("a one-shot that was missed while suspended is delivered once (R180)", arguments: DeliveryPlace.allCases)
    func suspendedOneShot(_ place: DeliveryPlace) {
        withSimulation { simulation in
            let log = Log<String>()
            let source = TimerSource(place.queue, log, after: 100, every: nil)
            source.suspend()
            simulation.advance(to: ms(350))
            source.resume()
            simulation.advance(to: ms(900))
            #expect(log.entries == ["350: 1"])
        }
    }

    @Test("a suspend inside the handler lets the handler finish (R181)", arguments: DeliveryPlace.allCases)
    func suspendInside(_ place: DeliveryPlace) {
        withSimulation { simulation in
            let log = Log<String>()
            let source = TimerSource(queue: place.queue)
            source.setEventHandler { source in
                log.note(source)
                if log.entries.count == 1 { source.suspend() }
                simulation.spend(.milliseconds(10))
                log.note("end", simulation)
            }
            source.schedule(after: .milliseconds(100), repeating: .milliseconds(100))
            source.activate()
            simulation.advance(to: ms(450))
            source.resume()
            simulation.advance(to: ms(530))
            #expect(
                log.entries == ["100: 1", "110: end", "450: 3", "460: end", "500: 1", "510: end"])
        }
    }

    @Test("a suspend before a waiting delivery begins holds it back (R175, R180)")
    func suspendWhileWaiting() {
        withSimulation { simulation in
            let log = Log<String>()
            let pool = LoopThreadPool(name: "one", maximumThreads: 1)
            let busy = TimerSource(queue: .pool(pool))
            busy.setEventHandler { _ in simulation.spend(.milliseconds(100)) }
            busy.schedule(after: .milliseconds(5))
            busy.activate()
            let source = TimerSource(.pool(pool), log, after: 10, every: 10)
            simulation.advance(to: ms(50))
            source.suspend()
            simulation.advance(to: ms(125))
            #expect(log.entries == [])
            source.resume()
            simulation.advance(to: ms(130))
            #expect(log.entries == ["125: 12", "130: 1"])
        }
    }

    @Test(
        "a resume too many is ignored, and owes nothing to the next suspend (R182)",
        arguments: DeliveryPlace.allCases)
    func overResume(_ place: DeliveryPlace) {
        withSimulation { simulation in
            let log = Log<String>()
            let source = TimerSource(place.queue, log, after: 100, every: 100)
            source.resume()
            source.resume()
            source.suspend()
            simulation.advance(to: ms(250))
            #expect(log.entries == [])
            source.resume()
            source.resume()
            simulation.advance(to: ms(300))
            #expect(log.entries == ["250: 2", "300: 1"])
        }
    }

    // MARK: R183, R184

    /// Makes a source with both handlers, prepares it, releases it, and returns the handlers that were called.
    private func release(_ place: DeliveryPlace, _ prepare: (TimerSource) -> Void) -> [String] {
        withSimulation { simulation in
            let log = Log<String>()
            let released = Counter()
            var source: TimerSource? = TimerSource(place.queue, log)
            let tokens = [Token { released.add() }, Token { released.add() }]
            source!.setEventHandler { [token = tokens[0]] source in
                token.touch()
                log.note(source)
            }
            source!.setCancelHandler { [token = tokens[1]] in
                token.touch()
                log.note("cancel", simulation)
            }
            source!.schedule(after: .milliseconds(10), repeating: .milliseconds(10))
            prepare(source!)
            source = nil
            simulation.advance(by: .milliseconds(50))
            withExtendedLifetime(tokens) {}
            return log.entries
        }
    }

    @Test(
        "a released source falls silent, and its cancel handler is not called (R184)",
        arguments: DeliveryPlace.allCases)
    func released(_ place: DeliveryPlace) {
        #expect(release(place) { $0.activate() } == [])
    }

    @Test("a source may be released while suspended or inactive (R183)", arguments: DeliveryPlace.allCases)
    func releasedHeldBack(_ place: DeliveryPlace) {
        #expect(release(place) { _ in } == [])
        let suspended = release(place) { source in
            source.activate()
            source.suspend()
            source.suspend()
        }
        #expect(suspended == [])
        #expect(release(place) { $0.suspend() } == [])
    }

    @Test(
        "a source that was cancelled calls its cancel handler once though it is released (R183)",
        arguments: DeliveryPlace.allCases)
    func releasedCancelled(_ place: DeliveryPlace) {
        let inactive = release(place) { $0.cancel() }
        #expect(inactive == ["0: cancel"])
        let suspended = release(place) { source in
            source.activate()
            source.suspend()
            source.cancel()
        }
        #expect(suspended == ["0: cancel"])
        let active = release(place) { source in
            source.activate()
            source.cancel()
        }
        #expect(active == ["0: cancel"])
    }

    @Test("a source released inside its handler finishes it, and falls silent", arguments: DeliveryPlace.allCases)
    func releasedInside(_ place: DeliveryPlace) {
        withSimulation { simulation in
            let log = Log<String>()
            let box = Locked<TimerSource?>(nil)
            func fill() {
                let token = Token { log("released") }
                let source = TimerSource(queue: place.queue)
                source.setEventHandler { _ in
                    let dropped = box.withLock { exchange(&$0, with: nil) }
                    withExtendedLifetime(dropped) {}
                    simulation.spend(.milliseconds(25))
                    token.touch()
                    log.note("end", simulation)
                }
                source.schedule(after: .milliseconds(10), repeating: .milliseconds(10))
                source.activate()
                box.withLock { $0 = source }
            }
            fill()
            simulation.advance(by: .milliseconds(100))
            #expect(log.entries == ["35: end", "released"])
        }
    }

    // MARK: R185–R189

    @Test(
        "cancel inside the handler: it finishes, and then the cancel handler is called once (R185, R186)",
        arguments: DeliveryPlace.allCases)
    func cancelInside(_ place: DeliveryPlace) {
        withSimulation { simulation in
            let log = Log<String>()
            let source = TimerSource(queue: place.queue)
            source.setCancelHandler { log.note("cancel", simulation) }
            source.setEventHandler { source in
                log.note(source)
                source.cancel()
                #expect(source.isCancelled)
                simulation.spend(.milliseconds(25))
                source.cancel()
                log.note("end", simulation)
            }
            source.schedule(after: .milliseconds(10), repeating: .milliseconds(10))
            source.activate()
            simulation.advance(by: .milliseconds(200))
            source.cancel()
            simulation.advance(by: .milliseconds(200))
            #expect(log.entries == ["10: 1", "35: end", "35: cancel"])
        }
    }

    @Test("cancel never calls the cancel handler before it returns (R186)", arguments: DeliveryPlace.allCases)
    func cancelIsAsynchronous(_ place: DeliveryPlace) {
        withSimulation { simulation in
            let log = Log<String>()
            let source = TimerSource(place.queue, log, after: 10, every: 10)
            source.setCancelHandler { log.note("cancel", simulation) }
            simulation.advance(by: .milliseconds(10))
            source.cancel()
            log("returned")
            simulation.advance(by: .milliseconds(10))
            #expect(log.entries == ["10: 1", "returned", "10: cancel"])
        }
    }

    @Test(
        "a fire due and not begun when the source is cancelled is not delivered (R185)",
        arguments: DeliveryPlace.allCases)
    func cancelDue(_ place: DeliveryPlace) {
        withSimulation { simulation in
            let log = Log<String>()
            let source = TimerSource(place.queue, log, after: 10, every: 10)
            if place == .loop { simulation.spend(.milliseconds(35)) } else { source.suspend() }
            source.cancel()
            source.resume()
            simulation.advance(by: .milliseconds(100))
            #expect(log.entries == [])
        }
    }

    @Test("a cancel handler does not run in the middle of a nested run inside the event handler (R186)")
    func cancelDuringNestedRun() {
        withSimulation { simulation in
            let log = Log<String>()
            let loop = simulation.loop
            let source = TimerSource(queue: .current)
            source.setCancelHandler { log.note("cancel", simulation) }
            source.setEventHandler(on: loop) { source in
                log.note(source)
                source.cancel()
                #expect(loop.run(in: .default, until: loop.now + .milliseconds(30)) == .timedOut)
                log.note("end", simulation)
            }
            source.schedule(after: .milliseconds(10), repeating: .milliseconds(10))
            source.activate()
            simulation.advance(by: .milliseconds(100))
            #expect(log.entries == ["10: 1", "40: end", "40: cancel"])
        }
    }

    @Test(
        "the cancel handler of a suspended source waits for the last resume (R187)",
        arguments: DeliveryPlace.allCases)
    func cancelSuspended(_ place: DeliveryPlace) {
        withSimulation { simulation in
            let log = Log<String>()
            let source = TimerSource(place.queue, log, after: 10, every: 10)
            source.setCancelHandler { log.note("cancel", simulation) }
            source.suspend()
            source.suspend()
            source.cancel()
            simulation.advance(by: .milliseconds(50))
            source.resume()
            simulation.advance(by: .milliseconds(50))
            #expect(log.entries == [])
            source.resume()
            simulation.advance(by: .milliseconds(50))
            #expect(log.entries == ["100: cancel"])
        }
    }

    @Test("the cancel handler of an inactive source waits for the activation (R187)", arguments: DeliveryPlace.allCases)
    func cancelInactive(_ place: DeliveryPlace) {
        withSimulation { simulation in
            let log = Log<String>()
            let source = TimerSource(place.queue, log)
            source.setCancelHandler { log.note("cancel", simulation) }
            source.schedule(after: .milliseconds(10), repeating: .milliseconds(10))
            source.cancel()
            simulation.advance(by: .milliseconds(50))
            #expect(log.entries == [])
            source.activate()
            simulation.advance(by: .milliseconds(50))
            #expect(log.entries == ["50: cancel"])
        }
    }

    @Test(
        "a suspend after cancel still holds the cancel handler back, if it comes first (R187)",
        arguments: DeliveryPlace.allCases)
    func suspendAfterCancel(_ place: DeliveryPlace) {
        withSimulation { simulation in
            let log = Log<String>()
            let source = TimerSource(place.queue, log, after: 10, every: 10)
            source.setCancelHandler { log.note("cancel", simulation) }
            source.cancel()
            source.suspend()
            simulation.advance(by: .milliseconds(50))
            #expect(log.entries == [])
            source.resume()
            simulation.advance(by: .milliseconds(50))
            #expect(log.entries == ["50: cancel"])
        }
    }

    @Test("after cancel nothing can be scheduled or set any more (R188)", arguments: DeliveryPlace.allCases)
    func afterCancel(_ place: DeliveryPlace) {
        withSimulation { simulation in
            let log = Log<String>()
            let source = TimerSource(place.queue, log, after: 10, every: 10)
            source.cancel()
            source.schedule(after: .milliseconds(5), repeating: .milliseconds(5))
            source.setEventHandler { log.note($0) }
            source.setCancelHandler { log("cancel") }
            source.activate()
            source.resume()
            simulation.advance(by: .milliseconds(50))
            #expect(log.entries == [])
            #expect(source.isCancelled)
        }
    }

    @Test("cycles through the handlers are broken by cancel (R189)", arguments: DeliveryPlace.allCases, [true, false])
    func cycles(_ place: DeliveryPlace, hasCancelHandler: Bool) {
        withSimulation { simulation in
            let cycle = Log<String>()
            func make() -> Weak<TimerSource> {
                let source = TimerSource(place.queue, cycle)
                source.setEventHandler { _ in source.cancel() }
                if hasCancelHandler { source.setCancelHandler { cycle("\(source.isCancelled)") } }
                source.schedule(after: .milliseconds(10), repeating: .milliseconds(10))
                source.activate()
                return Weak(source)
            }
            let source = make()
            simulation.advance(to: ms(9))
            #expect(!source.isGone)
            simulation.advance(to: ms(10))
            #expect(source.isGone)
            #expect(cycle.entries == (hasCancelHandler ? ["true"] : []))
        }
    }

    @Test("a cancel from another thread, while the handler runs, lets it finish (R185, R186)")
    func cancelFromThread() {
        withSimulation { simulation in
            let log = Log<String>()
            let source = TimerSource(queue: .background)
            source.setCancelHandler { log.note("cancel", simulation) }
            source.setEventHandler { source in
                log.note(source)
                simulation.spend(.milliseconds(25))
                log.note("end", simulation)
            }
            source.schedule(after: .milliseconds(10), repeating: .milliseconds(10))
            source.activate()
            simulation.advance(to: ms(20))
            source.cancel()
            #expect(source.isCancelled)
            simulation.advance(to: ms(100))
            #expect(log.entries == ["10: 1", "35: end", "35: cancel"])
        }
    }

    @Test("a thread of the pool that was ordered to deliver does not, if the source is cancelled before (R185)")
    func cancelWaiting() {
        withSimulation { simulation in
            let log = Log<String>()
            let pool = LoopThreadPool(name: "one", maximumThreads: 1)
            let busy = TimerSource(queue: .pool(pool))
            busy.setEventHandler { _ in simulation.spend(.milliseconds(100)) }
            busy.schedule(after: .milliseconds(5))
            busy.activate()
            let source = TimerSource(.pool(pool), log, after: 10, every: 10)
            source.setCancelHandler { log.note("cancel", simulation) }
            let silent = TimerSource(.pool(pool), log, after: 10, every: 10)
            simulation.advance(to: ms(50))
            source.cancel()
            silent.cancel()
            simulation.advance(to: ms(200))
            #expect(log.entries == ["105: cancel"])
        }
    }
}
