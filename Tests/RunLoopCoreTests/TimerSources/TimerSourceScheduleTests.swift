import RunLoopCore
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

/// R170–R179 and R190: the times when a source fires, and the number of fires that it reports.
@Suite("When a timer source fires", .timeLimit(.minutes(15)))
struct TimerSourceScheduleTests {
    // MARK: R170, R171

    @Test("a source is inactive until it is activated (R170)", arguments: DeliveryPlace.allCases)
    func inactive(_ place: DeliveryPlace) {
        withSimulation { simulation in
            let log = Log<String>()
            let source = TimerSource(place.queue, log)
            source.schedule(after: .milliseconds(100))
            simulation.advance(by: .milliseconds(90))
            source.activate()
            source.activate()
            simulation.advance(by: .milliseconds(100))
            #expect(log.entries == ["100: 1"])
        }
    }

    @Test("an inactive source keeps no run going (R170)")
    func inactiveKeepsNothing() {
        withSimulation { simulation in
            let source = TimerSource(queue: .current)
            source.schedule(after: .milliseconds(100))
            #expect(simulation.loop.run(in: .default) == .finished)
            #expect(simulation.now == ms(0))
            withExtendedLifetime(source) {}
        }
    }

    @Test("the first resume of an inactive source activates it (R170)", arguments: DeliveryPlace.allCases)
    func firstResume(_ place: DeliveryPlace) {
        withSimulation { simulation in
            let log = Log<String>()
            let source = TimerSource(place.queue, log)
            source.schedule(after: .milliseconds(100), repeating: .milliseconds(100))
            source.resume()
            simulation.advance(by: .milliseconds(200))
            #expect(log.entries == ["100: 1", "200: 1"])
        }
    }

    @Test("the resume that matches a suspend of an inactive source does not activate it (R170, R180)")
    func matchedResumeWhileInactive() {
        withSimulation { simulation in
            let log = Log<String>()
            let source = TimerSource(.current, log)
            source.schedule(after: .milliseconds(100))
            source.suspend()
            source.resume()
            simulation.advance(by: .milliseconds(200))
            #expect(log.entries == [])
            source.resume()
            simulation.advance(by: .milliseconds(1))
            #expect(log.entries == ["200: 1"])
        }
    }

    @Test("fires come on multiples of the interval after the start, however long a day is (R171)")
    func grid() {
        withSimulation { simulation in
            let dates = Log<RunLoop.Instant>()
            let source = TimerSource(queue: .current)
            source.setEventHandler { dates.append($0.queue.now) }
            source.schedule(after: .milliseconds(50), repeating: .seconds(1) / 3)
            source.activate()
            simulation.advance(by: .seconds(1000))
            let expected = (0..<3000).map {
                RunLoop.Instant(nanoseconds: 50_000_000 + Int64($0) * 1_000_000_000 / 3)
            }
            #expect(dates.entries.count == 3000)
            // A third of a second is rounded to the attosecond: the dates are at most one nanosecond early.
            #expect(zip(dates.entries, expected).allSatisfy { $1.nanoseconds - $0.nanoseconds <= 1 })
            #expect(dates.entries == dates.entries.sorted())
        }
    }

    @Test("a new schedule drops the undelivered fires of a suspended source (R171)", arguments: DeliveryPlace.allCases)
    func rescheduleWhileSuspended(_ place: DeliveryPlace) {
        withSimulation { simulation in
            let log = Log<String>()
            let source = TimerSource(place.queue, log, after: 10, every: 10)
            source.suspend()
            simulation.advance(by: .milliseconds(100))
            source.schedule(after: .milliseconds(30), repeating: .milliseconds(20))
            source.resume()
            simulation.advance(by: .milliseconds(50))
            #expect(log.entries == ["130: 1", "150: 1"])
        }
    }

    @Test("a new schedule drops the undelivered fires of a busy loop (R171)")
    func rescheduleWhileBusy() {
        withSimulation { simulation in
            let log = Log<String>()
            let source = TimerSource(.current, log, after: 10, every: 10)
            simulation.spend(.milliseconds(35))
            source.schedule(after: .milliseconds(10), repeating: .milliseconds(100))
            simulation.advance(to: ms(150))
            #expect(log.entries == ["45: 1", "145: 1"])
        }
    }

    @Test("a new schedule drops fires that wait for a thread of the pool (R171)")
    func rescheduleWhileWaiting() {
        withSimulation { simulation in
            let log = Log<String>()
            let pool = LoopThreadPool(name: "one", maximumThreads: 1)
            let busy = TimerSource(queue: .pool(pool))
            busy.setEventHandler { _ in simulation.spend(.milliseconds(100)) }
            busy.schedule(after: .milliseconds(5))
            busy.activate()
            let source = TimerSource(.pool(pool), log, after: 10, every: 10)
            simulation.advance(to: ms(50))
            source.schedule(after: .milliseconds(70), repeating: .milliseconds(10))
            simulation.advance(to: ms(131))
            #expect(log.entries == ["120: 1", "130: 1"])
        }
    }

    @Test("a new schedule from another thread takes effect at once", arguments: DeliveryPlace.allCases)
    func rescheduleFromThread(_ place: DeliveryPlace) {
        withSimulation { simulation in
            let log = Log<String>()
            let source = TimerSource(place.queue, log, after: 1000, every: nil)
            let thread = LoopThread(name: "other") { loop in
                loop.perform(afterDelay: .milliseconds(20)) {
                    source.schedule(after: .milliseconds(10), repeating: .milliseconds(10))
                }
                loop.perform(afterDelay: .milliseconds(45)) { source.schedule(after: .milliseconds(30)) }
            }
            simulation.advance(by: .seconds(2))
            thread.join()
            #expect(log.entries == ["30: 1", "40: 1", "75: 1"])
        }
    }

    // MARK: R172, R173

    @Test(
        "a one-shot stays alive and uncancelled, and can be scheduled again (R172)",
        arguments: DeliveryPlace.allCases)
    func oneShot(_ place: DeliveryPlace) {
        withSimulation { simulation in
            let log = Log<String>()
            let source = TimerSource(place.queue, log, after: 100, every: nil)
            simulation.advance(by: .milliseconds(250))
            #expect(!source.isCancelled)
            source.schedule(after: .milliseconds(50))
            simulation.advance(by: .milliseconds(250))
            #expect(log.entries == ["100: 1", "300: 1"])
        }
    }

    @Test("a one-shot may schedule itself again from its own handler (R172)", arguments: DeliveryPlace.allCases)
    func oneShotAgain(_ place: DeliveryPlace) {
        withSimulation { simulation in
            let log = Log<String>()
            let source = TimerSource(queue: place.queue)
            source.setEventHandler { source in
                log.note(source)
                simulation.spend(.milliseconds(5))
                if log.entries.count < 4 { source.schedule(after: .milliseconds(10)) }
            }
            source.schedule(after: .milliseconds(10))
            source.activate()
            simulation.advance(by: .seconds(1))
            #expect(log.entries == ["10: 1", "25: 1", "40: 1", "55: 1"])
        }
    }

    @Test("a handler that schedules its source in the past is called again in another pass, not within itself")
    func pastFromHandler() {
        withSimulation { simulation in
            let log = Log<String>()
            let source = TimerSource(queue: .current)
            source.setEventHandler { source in
                log.note(source)
                if log.entries.count < 4 { source.schedule(deadline: ms(0)) }
                log("end")
            }
            source.schedule(after: .milliseconds(10))
            source.activate()
            simulation.advance(by: .milliseconds(10))
            #expect(log.entries == ["10: 1", "end", "10: 1", "end", "10: 1", "end"])
        }
    }

    @Test("an interval of zero is taken as a nanosecond (R173)", arguments: DeliveryPlace.allCases)
    func zeroInterval(_ place: DeliveryPlace) {
        withSimulation { simulation in
            let fires = Counter()
            let source = TimerSource(queue: place.queue)
            source.setEventHandler { fires.add($0.data) }
            source.schedule(deadline: RunLoop.Instant(nanoseconds: 3), repeating: .zero)
            source.activate()
            simulation.advance(to: RunLoop.Instant(nanoseconds: 10))
            #expect(fires.value == 8)
        }
    }

    @Test("an interval below a nanosecond is taken as one (R173)")
    func tinyInterval() {
        withSimulation { simulation in
            let fires = Counter()
            let source = TimerSource(queue: .current)
            source.setEventHandler { fires.add($0.data) }
            source.schedule(
                deadline: RunLoop.Instant(nanoseconds: 0),
                repeating: Duration(secondsComponent: 0, attosecondsComponent: 1))
            source.activate()
            simulation.advance(to: RunLoop.Instant(nanoseconds: 10))
            #expect(fires.value == 11)
        }
    }

    @Test("a negative interval makes a one-shot (R173)", arguments: DeliveryPlace.allCases)
    func negativeInterval(_ place: DeliveryPlace) {
        withSimulation { simulation in
            let log = Log<String>()
            let source = TimerSource(place.queue, log, after: 10, every: -10)
            simulation.advance(by: .milliseconds(100))
            #expect(log.entries == ["10: 1"])
            withExtendedLifetime(source) {}
        }
    }

    @Test("distantFuture disarms a source, which then keeps no run going (R173)")
    func disarm() {
        withSimulation { simulation in
            let log = Log<String>()
            let source = TimerSource(.current, log, after: 10, every: 10)
            simulation.advance(by: .milliseconds(15))
            source.schedule(deadline: .distantFuture, repeating: .milliseconds(1))
            #expect(simulation.loop.run(in: .default) == .finished)
            #expect(simulation.now == ms(15))
            source.schedule(after: .milliseconds(10))
            #expect(simulation.loop.run(in: .default) == .finished)
            #expect(log.entries == ["10: 1", "25: 1"])
        }
    }

    @Test("the greatest durations neither trap nor fire", arguments: DeliveryPlace.allCases)
    func extremes(_ place: DeliveryPlace) {
        withSimulation { simulation in
            let log = Log<String>()
            let endless = Duration(secondsComponent: .max, attosecondsComponent: 0)
            let never = TimerSource(place.queue, log)
            never.schedule(after: endless, repeating: endless, leeway: endless)
            never.activate()
            let once = TimerSource(place.queue, log)
            once.schedule(after: .milliseconds(10), repeating: endless, leeway: endless)
            once.activate()
            let before = TimerSource(place.queue, log)
            before.schedule(deadline: .distantPast, repeating: .seconds(1_000_000_000), leeway: .zero - endless)
            before.activate()
            simulation.advance(by: .seconds(86_400))
            // -292 years in steps of 31.7 years.
            #expect(log.entries == ["0: 10", "10: 1"])
            withExtendedLifetime((never, once, before)) {}
        }
    }

    // MARK: R174 on virtual time

    @Test("leeway moves nothing on virtual time (R174)", arguments: DeliveryPlace.allCases)
    func leeway(_ place: DeliveryPlace) {
        withSimulation { simulation in
            let log = Log<String>()
            let source = TimerSource(place.queue, log)
            source.schedule(after: .milliseconds(7), repeating: .milliseconds(10), leeway: .seconds(10))
            source.activate()
            simulation.advance(by: .milliseconds(30))
            #expect(log.entries == ["7: 1", "17: 1", "27: 1"])
        }
    }

    // MARK: R175–R177

    @Test(
        "fires during the handler are merged into one delivery after it, on the old phase (R175–R177)",
        arguments: DeliveryPlace.allCases)
    func busyHandler(_ place: DeliveryPlace) {
        withSimulation { simulation in
            let log = Log<String>()
            let source = TimerSource(queue: place.queue)
            source.setEventHandler { source in
                log.note(source)
                if log.entries.count == 1 { simulation.spend(.milliseconds(350)) }
            }
            source.schedule(after: .milliseconds(100), repeating: .milliseconds(100))
            source.activate()
            simulation.advance(to: ms(600))
            #expect(log.entries == ["100: 1", "450: 3", "500: 1", "600: 1"])
        }
    }

    @Test("a grid point exactly at the end of a handler is counted then (R177)", arguments: DeliveryPlace.allCases)
    func endsOnGrid(_ place: DeliveryPlace) {
        withSimulation { simulation in
            let log = Log<String>()
            let source = TimerSource(queue: place.queue)
            source.setEventHandler { source in
                log.note(source)
                if log.entries.count == 1 { simulation.spend(.milliseconds(200)) }
            }
            source.schedule(after: .milliseconds(100), repeating: .milliseconds(100))
            source.activate()
            simulation.advance(to: ms(400))
            #expect(log.entries == ["100: 1", "300: 2", "400: 1"])
        }
    }

    @Test("fires while the loop is busy are merged into one (R175, R176)")
    func busyLoop() {
        withSimulation { simulation in
            let log = Log<String>()
            let source = TimerSource(.current, log, after: 100, every: 100)
            simulation.loop.perform(afterDelay: .milliseconds(250)) { simulation.spend(.milliseconds(400)) }
            simulation.advance(to: ms(800))
            #expect(log.entries == ["100: 1", "200: 1", "650: 4", "700: 1", "800: 1"])
            withExtendedLifetime(source) {}
        }
    }

    @Test("data keeps the number of the last delivery outside of the handler, and is zero before the first")
    func dataOutside() {
        withSimulation { simulation in
            let log = Log<String>()
            let source = TimerSource(.current, log, after: 100, every: 100)
            #expect(source.data == 0)
            simulation.spend(.milliseconds(330))
            #expect(source.data == 0)
            simulation.advance(by: .zero)
            #expect(source.data == 3)
            simulation.advance(by: .milliseconds(100))
            #expect(source.data == 1)
        }
    }

    // MARK: R178, R179

    @Test("a start in the past keeps its phase and counts (R178)", arguments: DeliveryPlace.allCases)
    func startInThePast(_ place: DeliveryPlace) {
        withSimulation { simulation in
            let log = Log<String>()
            simulation.advance(by: .seconds(1))
            let source = TimerSource(place.queue, log, after: -350, every: 100)
            simulation.advance(by: .milliseconds(150))
            #expect(log.entries == ["1000: 4", "1050: 1", "1150: 1"])
            withExtendedLifetime(source) {}
        }
    }

    @Test(
        "a one-shot in the past is delivered at once, and never before the call returns (R178)",
        arguments: DeliveryPlace.allCases)
    func oneShotInThePast(_ place: DeliveryPlace) {
        withSimulation { simulation in
            let log = Log<String>()
            simulation.advance(by: .seconds(1))
            let source = TimerSource(place.queue, log, after: -350, every: nil)
            #expect(log.entries == [])
            simulation.advance(by: .zero)
            #expect(log.entries == ["1000: 1"])
            withExtendedLifetime(source) {}
        }
    }

    @Test("time before the activation counts too (R179)", arguments: DeliveryPlace.allCases)
    func lateActivation(_ place: DeliveryPlace) {
        withSimulation { simulation in
            let log = Log<String>()
            let source = TimerSource(place.queue, log)
            source.schedule(after: .milliseconds(100), repeating: .milliseconds(100))
            simulation.advance(by: .milliseconds(350))
            source.activate()
            simulation.advance(by: .milliseconds(150))
            #expect(log.entries == ["350: 3", "400: 1", "500: 1"])
        }
    }

    // MARK: R190

    @Test("deadlines are on the clock of the queue (R190)", arguments: DeliveryPlace.allCases)
    func clock(_ place: DeliveryPlace) {
        withSimulation { simulation in
            let log = Log<String>()
            simulation.advance(by: .milliseconds(40))
            #expect(place.queue.now == simulation.now)
            let source = TimerSource(place.queue, log)
            source.schedule(deadline: place.queue.now + .milliseconds(2))
            source.activate()
            simulation.advance(by: .milliseconds(10))
            #expect(log.entries == ["42: 1"])
        }
    }

    // MARK: Handlers

    @Test("fires without an event handler are not counted for a later handler", arguments: DeliveryPlace.allCases)
    func withoutHandler(_ place: DeliveryPlace) {
        withSimulation { simulation in
            let log = Log<String>()
            let source = TimerSource(place.queue, log, after: 10, every: 10)
            source.setEventHandler(nil)
            simulation.advance(by: .milliseconds(35))
            source.setEventHandler { log.note($0) }
            simulation.advance(by: .milliseconds(10))
            #expect(log.entries == ["40: 1"])
        }
    }

    @Test("a handler set inside the handler is called from the next delivery on", arguments: DeliveryPlace.allCases)
    func replaceInside(_ place: DeliveryPlace) {
        withSimulation { simulation in
            let log = Log<String>()
            let source = TimerSource(queue: place.queue)
            source.setEventHandler { source in
                source.setEventHandler { _ in log.note("second", simulation) }
                log.note("first", simulation)
            }
            source.schedule(after: .milliseconds(10), repeating: .milliseconds(10))
            source.activate()
            simulation.advance(by: .milliseconds(30))
            #expect(log.entries == ["10: first", "20: second", "30: second"])
        }
    }
}
