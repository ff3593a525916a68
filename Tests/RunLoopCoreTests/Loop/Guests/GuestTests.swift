import Glibc
import RunLoopCore
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

/// A loop with a guest and a host, for tests on a thread of its own.
struct Visit {
    let loop: RunLoop
    let guest: RunLoop.Guest
    let host: any Host

    init(_ kind: any Host.Type = PollHost.self) throws {
        loop = .current
        guest = loop.makeGuest()
        host = try kind.init(for: guest)
    }

    /// `true` if the host would wake up now.
    var isReadable: Bool { host.wait(in: .default, .zero) }

    var isDueLater: Bool { guest.prepare() > loop.now }
}

@Suite("A guest in another loop", .timeLimit(.minutes(15)))
struct GuestTests {
    @Test("a host of poll or epoll wakes up once for each date, and never early")
    func dates() {
        for kind in [PollHost.self, EpollHost.self] as [any Host.Type] {
            let found: [Int] = onThread {
                let visit = try! Visit(kind)
                var (fired, early) = (0, 0)
                let start = visit.loop.now
                for number in 1...100 {
                    let date = start + .microseconds(number * 701)
                    visit.loop.add(
                        Timer(fire: date, interval: .zero, repeats: false) { _ in
                            fired += 1
                            if visit.loop.now < date { early += 1 }
                        }, forMode: .default)
                }
                visit.guest.prepare()
                let wakeUps = visit.host.run(visit.guest) { fired == 100 } ?? -1
                return [fired, early, wakeUps, visit.loop.statistics.passes]
            }
            #expect(found[0] == 100 && found[1] == 0)
            #expect(found[2] > 0 && found[2] <= 100 && found[3] == found[2])
        }
    }

    @Test("an idle guest does not wake its host, and a pass leaves it idle")
    func idle() {
        let readable: [Bool] = onThread {
            let visit = try! Visit()
            visit.loop.perform(afterDelay: .seconds(3600)) {}
            let pair = DescriptorPair()
            try! visit.loop.add(
                DescriptorSource(fileDescriptor: pair.reader, events: .readable) { _, _ in }, forMode: .default)
            visit.guest.run()
            var readable = [visit.host.wait(in: .default, .milliseconds(20))]
            for _ in 0..<3 {
                visit.guest.run()
                readable.append(visit.isReadable)
            }
            return readable
        }
        #expect(readable == [false, false, false, false])
    }

    @Test("each post of another thread to a host that sleeps wakes it")
    func posts() {
        let rounds = 2000
        let found: [Int] = onThread {
            let visit = try! Visit()
            let remote = visit.loop.remote
            let served = Counter()
            let poster = PlainThread {
                for round in 0..<rounds {
                    while served.value < round || !remote.isWaiting { sched_yield() }
                    remote.perform { _ in served.add() }
                }
            }
            let wakeUps = visit.host.run(visit.guest) { served.value == rounds } ?? -1
            poster.join()
            return [served.value, wakeUps]
        }
        #expect(found == [rounds, rounds])
    }

    @Test("posts that race with the end of a run are not lost")
    func racingPosts() {
        let rounds = 20_000
        let served: Int = onThread {
            let visit = try! Visit(EpollHost.self)
            let remote = visit.loop.remote
            let served = Counter()
            let poster = PlainThread {
                for round in 0..<rounds {
                    while served.value < round { sched_yield() }
                    for _ in 0..<(round * 13) % 97 { _ = served.value }
                    remote.perform { _ in served.add() }
                }
            }
            _ = visit.host.run(visit.guest) { served.value == rounds }
            poster.join()
            return served.value
        }
        #expect(served == rounds)
    }

    @Test("the wait is for one mode, and a descriptor that is ready in another one wakes the host once")
    func modes() {
        let found: [Bool] = onThread {
            let visit = try! Visit()
            let (loop, guest) = (visit.loop, visit.guest)
            var log: [String] = []
            let pair = DescriptorPair()
            let source = DescriptorSource(fileDescriptor: pair.reader, events: .readable) { _, _ in
                pair.drain()
                log.append("bytes")
            }
            try! loop.add(source, forMode: .tracking)
            loop.perform(afterDelay: .zero, inModes: .tracking) { log.append("call") }
            loop.perform(inModes: .tracking) { log.append("block") }
            guest.run()
            var found = [visit.isReadable]
            pair.write()
            found.append(visit.isReadable)
            guest.run()
            found.append(visit.isReadable)
            found.append(log.isEmpty && loop.statistics.parks == 1)
            found.append(guest.prepare(in: .tracking) == .distantPast && visit.isReadable)
            guest.run(in: .tracking)
            found.append(Set(log).isSuperset(of: ["block", "call"]))
            _ = visit.host.run(guest, in: .tracking) { log.count == 3 }
            found.append(!visit.isReadable)
            return found
        }
        #expect(found == [false, true, false, true, true, true, true])
    }

    /// The changes that the host's code may make between two runs. Each makes something due within a few milliseconds.
    nonisolated(unsafe) private static let changes: [(String, (Visit, @escaping () -> Void) -> Void)] = [
        ("a block", { visit, done in visit.loop.perform(done) }),
        (
            "a block by the remote",
            { visit, done in
                let done = Smuggled(done)
                visit.loop.remote.perform { _ in done.value() }
            }
        ),
        (
            "a new timer",
            { visit, done in
                visit.loop.add(
                    Timer(fire: visit.loop.now + .milliseconds(2), interval: .zero, repeats: false) { _ in done() },
                    forMode: .default)
            }
        ),
        ("a delayed call", { visit, done in visit.loop.perform(afterDelay: .milliseconds(2), done) }),
        (
            "a signal",
            { visit, done in
                let source = CustomSource { _ in done() }
                visit.loop.add(source, forMode: .default)
                visit.guest.run()
                source.signal()
            }
        ),
        (
            "a signalled source that joins",
            { visit, done in
                let source = CustomSource { _ in done() }
                source.signal()
                visit.loop.add(source, forMode: .default)
            }
        ),
        (
            "a timer that is moved",
            { visit, done in
                let timer = Timer(fire: visit.loop.now + .seconds(60), interval: .zero, repeats: false) { _ in done() }
                visit.loop.add(timer, forMode: .default)
                visit.guest.run()
                timer.fireDate = visit.loop.now + .milliseconds(2)
            }
        ),
        (
            "a call that is armed again",
            { visit, done in
                let call = visit.loop.perform(afterDelay: .seconds(60), done)
                visit.guest.run()
                call.rearm(at: visit.loop.now + .milliseconds(2))
            }
        ),
        (
            "a timer that joins the mode",
            { visit, done in
                let timer = Timer(fire: visit.loop.now, interval: .zero, repeats: false) { _ in done() }
                visit.loop.add(timer, forMode: .tracking)
                visit.guest.run()
                visit.loop.add(timer, forMode: .default)
            }
        ),
        (
            "a mode that becomes common",
            { visit, done in
                let mode = RunLoop.Mode("visits")
                visit.loop.perform(inModes: .common) { _ = visit }
                visit.loop.add(
                    Timer(fire: visit.loop.now, interval: .zero, repeats: false) { _ in done() }, forMode: .common)
                visit.guest.run(in: mode)
                visit.loop.addCommonMode(mode)
            }
        ),
        (
            "a parked descriptor that joins",
            { visit, done in
                let pair = DescriptorPair()
                let source = DescriptorSource(fileDescriptor: pair.reader, events: .readable) { _, _ in
                    pair.drain()
                    done()
                }
                try! visit.loop.add(source, forMode: .tracking)
                pair.write()
                visit.guest.run()
                try! visit.loop.add(source, forMode: .default)
            }
        ),
        (
            "a descriptor that is no longer paused",
            { visit, done in
                let pair = DescriptorPair()
                let source = DescriptorSource(fileDescriptor: pair.reader, events: []) { _, _ in
                    pair.drain()
                    done()
                }
                try! visit.loop.add(source, forMode: .default)
                pair.write()
                visit.guest.run()
                source.events = .readable
            }
        ),
        (
            "a timer source",
            { visit, done in
                let done = Smuggled(done)
                let source = TimerSource(queue: .loop(visit.loop.remote))
                source.schedule(deadline: visit.loop.now + .milliseconds(2))
                let keeper = Box(source)
                source.setEventHandler { _ in
                    keeper.value.cancel()
                    done.value()
                }
                visit.guest.run()
                source.resume()
            }
        ),
        (
            "a display link",
            { visit, done in
                let link = DisplayLink { link in
                    link.invalidate()
                    done()
                }
                link.isPaused = true
                link.add(to: visit.loop, forMode: .default)
                visit.guest.run()
                link.isPaused = false
            }
        ),
        (
            "a task",
            { visit, done in
                let done = Smuggled(done)
                visit.loop.task { done.value() }
            }
        ),
        (
            "a task that is resumed",
            { visit, done in
                let done = Smuggled(done)
                let waiting = Box<CheckedContinuation<Void, Never>?>(nil)
                visit.loop.task {
                    await withCheckedContinuation { waiting.value = $0 }
                    done.value()
                }
                while waiting.value == nil { visit.guest.run() }
                waiting.value!.resume()
            }
        ),
        (
            "a task that begins to sleep there",
            { visit, done in
                let (done, clock, remote) = (Smuggled(done), visit.loop.clock, visit.loop.remote)
                visit.guest.run()
                Task.immediate {
                    try? await clock.sleep(for: .milliseconds(2))
                    // A task on Swift's own threads, continuing there.
                    remote.perform { _ in done.value() }
                }
            }
        ),
        (
            "a rate limit that is lifted",
            { visit, done in
                var calls = 0
                let source = CustomSource { _ in
                    calls += 1
                    if calls == 2 { done() }
                }
                source.rateLimit = RateLimit(interval: .seconds(60), burst: 1)
                visit.loop.add(source, forMode: .default)
                source.signal()
                while calls == 0 { visit.guest.run() }
                source.signal()
                for _ in 0..<3 { visit.guest.run() }
                precondition(!visit.isReadable, "what is held back is not due")
                source.rateLimit = nil
            }
        ),
        (
            "a run of the loop itself",
            { visit, done in
                visit.loop.perform(afterDelay: .milliseconds(4), done)
                visit.guest.run()
                visit.loop.run(in: .tracking, until: visit.loop.now)
                visit.loop.add(CustomSource(), forMode: .tracking)
                visit.loop.run(in: .tracking, until: visit.loop.now + .milliseconds(6))
            }
        ),
    ]

    @Test("whatever the host's code changes between two runs, it wakes up for it", arguments: 0..<changes.count)
    func change(number: Int) {
        let name = Self.changes[number].0
        let found: [Int] = onThread {
            let visit = try! Visit(EpollHost.self)
            var calls = 0
            visit.guest.run()
            Self.changes[number].1(visit) { calls += 1 }
            let mode: RunLoop.Mode = name.hasPrefix("a mode") ? RunLoop.Mode("visits") : .default
            let wakeUps = visit.host.run(visit.guest, in: mode) { calls > 0 }
            // Until everything due has been done.
            var rest = 0
            while visit.isReadable, rest < 10 {
                visit.guest.run(in: mode)
                rest += 1
            }
            return [calls, wakeUps ?? -1, rest]
        }
        #expect(found[0] == 1, "\(name)")
        // The change, its date, and the end of a task's job.
        #expect((1...3).contains(found[1]) && found[2] <= 2, "\(name): \(found)")
    }

    @Test("a host that prepares wakes up for no change that makes nothing due")
    func preparation() {
        let found: [Bool] = onThread {
            let visit = try! Visit()
            visit.guest.run()
            var found: [Bool] = []
            let call = visit.loop.perform(afterDelay: .seconds(3600)) {}
            found.append(visit.isReadable)
            found.append(visit.isDueLater && !visit.isReadable)
            call.rearm(at: visit.loop.now + .seconds(60))
            found.append(visit.isDueLater && !visit.isReadable)
            call.cancel()
            found.append(visit.guest.prepare() == .distantFuture && !visit.isReadable)
            visit.loop.perform {}
            found.append(visit.guest.prepare() == .distantPast && visit.isReadable)
            visit.guest.run()
            found.append(!visit.isReadable)
            return found
        }
        #expect(found == [true, true, true, true, true, true])
    }

    @Test("a handler may run the loop, which sleeps there, and the host continues afterwards")
    func nestedRun() {
        let log: [String] = onThread {
            let visit = try! Visit()
            let loop = visit.loop
            var log: [String] = []
            loop.perform(afterDelay: .milliseconds(1)) {
                log.append("begins")
                loop.perform(afterDelay: .milliseconds(1), inModes: .tracking) { log.append("nested") }
                _ = loop.run(in: .tracking)
                log.append("ends")
            }
            loop.perform(afterDelay: .milliseconds(2)) { log.append("later") }
            _ = visit.host.run(visit.guest) { log.count == 4 }
            log.append(visit.isReadable ? "readable" : "idle")
            return log
        }
        #expect(log == ["begins", "nested", "ends", "later", "idle"])
    }

    @Test("a handler may run the host, which runs the loop in another mode and loses nothing")
    func nestedHost() {
        let log: [String] = onThread {
            let visit = try! Visit(EpollHost.self)
            let (loop, guest) = (visit.loop, visit.guest)
            let remote = loop.remote
            var log: [String] = []
            let inner = Box(0)
            loop.perform(afterDelay: .milliseconds(1)) {
                log.append("begins")
                guest.prepare(in: .tracking)
                loop.perform(afterDelay: .milliseconds(1), inModes: .tracking) { inner.value += 1 }
                guest.prepare(in: .tracking)
                let poster = PlainThread { remote.perform(inModes: .tracking) { _ in inner.value += 1 } }
                _ = visit.host.run(guest, in: .tracking) { inner.value == 2 }
                poster.join()
                log.append("inner \(inner.value)")
                // The same handler runs the loop by itself, which must sleep and not spin.
                guest.prepare(in: .tracking)
                let passes = loop.statistics.passes
                loop.perform(afterDelay: .milliseconds(20), inModes: .tracking) {}
                _ = loop.run(in: .tracking)
                log.append(loop.statistics.passes - passes < 5 ? "slept" : "spun")
            }
            loop.perform(afterDelay: .milliseconds(2)) { log.append("later") }
            _ = visit.host.run(guest) { log.last == "later" }
            log.append(visit.isReadable ? "readable" : "idle")
            return log
        }
        #expect(log == ["begins", "inner 2", "slept", "later", "idle"])
    }

    @Test("a stop by any thread is the result of the next run, and an empty mode the result of every run")
    func results() {
        let results: [RunLoop.RunResult] = onThread {
            let visit = try! Visit()
            let (loop, guest) = (visit.loop, visit.guest)
            var results = [guest.run()]
            loop.add(CustomSource(), forMode: .default)
            results.append(guest.run())
            let remote = loop.remote
            PlainThread { remote.stop() }.join()
            precondition(visit.isReadable, "a stop wakes the host")
            results.append(guest.run())
            loop.perform { loop.stop() }
            results.append(guest.run())
            results.append(guest.run())
            precondition(!visit.isReadable, "a stop is over")
            return results
        }
        #expect(results == [.finished, .timedOut, .stopped, .stopped, .timedOut])
    }

    @Test("wake-ups in an empty mode end")
    func emptyMode() {
        let readable: [Bool] = onThread {
            let visit = try! Visit()
            let pair = DescriptorPair()
            let source = DescriptorSource(fileDescriptor: pair.reader, events: .readable) { _, _ in }
            try! visit.loop.add(source, forMode: .tracking)
            visit.guest.run()
            pair.write()
            visit.loop.remote.wakeUp()
            var readable = [visit.isReadable]
            visit.guest.run()
            readable.append(visit.isReadable)
            return readable
        }
        #expect(readable == [true, false])
    }

    @Test("observers see the sleeps of the host as the loop's own")
    func observers() {
        withSimulation { simulation in
            let guest = simulation.loop.makeGuest()
            let host = VirtualHost(for: guest)
            var log: [String] = []
            simulation.loop.add(
                Observer(activities: .all) { _, activity in log.append("\(activity)") }, forMode: .default)
            simulation.loop.perform(afterDelay: .seconds(1)) { log.append("call") }
            simulation.loop.perform(afterDelay: .seconds(9)) {}
            guest.run()
            log.append("host")
            #expect(host.wait(in: .default, VirtualHost.never))
            guest.run()
            let before = ["beforeTimers", "beforeSources"]
            #expect(
                log == ["entry"] + before + before + ["beforeWaiting", "exit", "host", "entry", "afterWaiting", "call"]
                    + before + ["beforeWaiting", "exit"])
        }
    }

    @Test("a sleep of the host counts as a wait")
    func statistics() {
        let waits: Int = onThread {
            let visit = try! Visit()
            let date = visit.loop.now + .milliseconds(1)
            for _ in 0..<2 { visit.loop.perform(at: date) {} }
            visit.guest.prepare()
            _ = visit.host.run(visit.guest) { visit.loop.statistics.fires == 2 }
            return visit.loop.statistics.waits
        }
        #expect(waits == 1)
    }

    @Test("when the guest has gone, the loop is its own again")
    func release() {
        let log: [String] = onThread {
            let loop = RunLoop.current
            var log: [String] = []
            do {
                let guest = loop.makeGuest()
                loop.perform { log.append("guest") }
                guest.run()
            }
            loop.perform(afterDelay: .milliseconds(1)) { log.append("alone") }
            let remote = loop.remote
            let poster = PlainThread { remote.perform { _ in } }
            log.append("\(loop.run(in: .default))")
            poster.join()
            let guest = loop.makeGuest()
            log.append("\(guest.run())")
            return log
        }
        #expect(log == ["guest", "alone", "finished", "finished"])
    }

    @Test("a thread that ends with a guest ends its loop")
    func end() {
        let log = Log<String>()
        onThread {
            let guest = RunLoop.current.makeGuest()
            let token = Timer(fire: RunLoop.current.now + .seconds(60), interval: .zero, repeats: false) { _ in }
            token.invalidationHandler = { log("invalidated") }
            RunLoop.current.add(token, forMode: .default)
            RunLoop.current[kept] = guest
        }
        #expect(log.entries == ["invalidated"])
    }

    @Test("a loop has one host at a time, on its own thread")
    func misuse() async {
        let second = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            func host() {
                let guest = RunLoop.current.makeGuest()
                _ = (RunLoop.current.makeGuest(), guest)
            }
            host()
        }
        let isSaid = says("a run loop has one host at a time; release the guest of the other one first", second)
        #expect(isSaid)
        let elsewhere = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            func host() {
                let guest = Smuggled(RunLoop.current.makeGuest())
                PlainThread { guest.value.prepare() }.join()
            }
            host()
        }
        let isSaidToo = says("a run loop and what is scheduled in it are used on the loop's own thread only", elsewhere)
        #expect(isSaidToo)
    }

    @Test("a preparation returns distantPast for a date that has passed, however often it is asked")
    func passedDates() {
        withSimulation { simulation in
            let guest = simulation.loop.makeGuest()
            let timer = Timer(at: simulation.now + .seconds(1)) { _ in }
            simulation.loop.add(timer, forMode: .default)
            #expect(guest.prepare() == timer.fireDate)
            simulation.spend(.seconds(1))
            #expect(guest.prepare() == .distantPast)
            simulation.spend(.seconds(1))
            #expect(guest.prepare() == .distantPast)
            timer.fireDate = simulation.now - .seconds(1)
            #expect(guest.prepare() == .distantPast)
            guest.run()
            #expect(guest.prepare() == .distantFuture)
        }
    }

    @Test("on virtual time no descriptor reports, and a host goes by dates")
    func virtualTime() {
        withSimulation { simulation in
            let guest = simulation.loop.makeGuest()
            #expect(throws: RunLoop.GuestError.noSystem) { try guest.fileDescriptor }
            var fired: [RunLoop.Instant] = []
            for seconds in 1...3 {
                simulation.loop.perform(afterDelay: .seconds(seconds)) { fired.append(simulation.now) }
            }
            while case let date = guest.prepare(), date != .distantFuture {
                if date > simulation.now { simulation.spend(date - simulation.now) }
                guest.run()
            }
            #expect(fired == (1...3).map { RunLoop.Instant(nanoseconds: $0 * 1_000_000_000) })
        }
    }
}

private let kept = RunLoop.Local<RunLoop.Guest?> { _ in nil }
