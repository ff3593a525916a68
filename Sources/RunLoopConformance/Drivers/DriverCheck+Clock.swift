internal import Glibc
@_spi(Ports) internal import RunLoopCore
internal import Synchronization
internal import TestSupport
internal import Testing

extension DriverCheck {
    static let ofClocks = [
        DriverCheck("the clock never goes back", monotonic),
        DriverCheck("a wait does not end before its deadline", neverEarly),
        DriverCheck("a deadline that has come does not sleep", comeDeadline),
        DriverCheck("the same deadline ends every wait for it, once it has come", sameDeadline),
        DriverCheck("a deadline that passed between two waits ends the next wait for it", passedDeadline),
        DriverCheck("an earlier deadline does not end a later wait", laterDeadline),
        DriverCheck("an earlier deadline than the last one is kept too", earlierDeadline),
        DriverCheck("a wake from another thread ends a wait", wakeFromThread),
        DriverCheck("a wake before the wait is not lost", wakeBeforeWait),
        DriverCheck("a wake before a thread has its driver is not lost", wakeBeforeDriver),
        DriverCheck("several wakes make one", wakesMerge),
        DriverCheck("of a thousand wakes in a row the last one is seen", wakesInARow),
        DriverCheck("a waker that outlives its driver is harmless", lateWake),
        DriverCheck("threads of one world share one clock", sharedClock),
        DriverCheck("a wall clock that is set is reported, and not again until it is set anew", wallClock),
    ]

    private static func monotonic(_ subject: DriverSubject) throws {
        try subject.run { driver in
            let ready = ReadyQueue()
            var last = driver.now
            var backwards = 0
            for step in 0..<20_000 {
                if step % 2000 == 0 { _ = driver.wait(until: last + .microseconds(100), into: ready) }
                let now = driver.now
                if now < last { backwards += 1 }
                last = now
            }
            #expect(backwards == 0)
        }
    }

    private static func neverEarly(_ subject: DriverSubject) throws {
        try subject.run { driver in
            let ready = ReadyQueue()
            for microseconds in [1, 10, 100, 999, 1000, 1001, 2500, 20_000] {
                let deadline = driver.now + .microseconds(microseconds)
                #expect(driver.wait(until: deadline, into: ready) == .woke)
                #expect(driver.now >= deadline, "\(microseconds) µs")
            }
            #expect(ready.isEmpty)
        }
    }

    private static func comeDeadline(_ subject: DriverSubject) throws {
        try subject.run { driver in
            let ready = ReadyQueue()
            let start = driver.now
            let come: [RunLoop.Instant] = [
                .distantPast, .init(nanoseconds: -1), .init(nanoseconds: 0), start - .seconds(1), start,
            ]
            for deadline in come { #expect(driver.wait(until: deadline, into: ready) == .woke) }
            #expect(ready.isEmpty)
            if subject.isVirtual { #expect(driver.now == start) }
        }
    }

    private static func sameDeadline(_ subject: DriverSubject) throws {
        try subject.run { driver in
            let ready = ReadyQueue()
            let deadline = driver.now + .milliseconds(2)
            for _ in 0..<3 {
                #expect(driver.wait(until: deadline, into: ready) == .woke)
                #expect(driver.now >= deadline)
            }
        }
    }

    private static func passedDeadline(_ subject: DriverSubject) throws {
        try subject.run { driver in
            let ready = ReadyQueue()
            let deadline = driver.now + .milliseconds(2)
            driver.waker.wake()
            #expect(driver.wait(until: deadline, into: ready) == .woke)
            while !subject.isVirtual && driver.now < deadline {}
            for _ in 0..<2 {
                #expect(driver.wait(until: deadline, into: ready) == .woke)
                #expect(driver.now >= deadline)
                // A look that finds the deadline passed does not take it from the waits to come.
                #expect(driver.wait(until: .distantPast, into: ready) == .woke)
            }
        }
    }

    private static func laterDeadline(_ subject: DriverSubject) throws {
        try subject.run { driver in
            let ready = ReadyQueue()
            // A wait for the first deadline, ended by a wake-up; then the deadline changes.
            let first = driver.now + .milliseconds(3)
            driver.waker.wake()
            _ = driver.wait(until: first, into: ready)
            let second = driver.now + .milliseconds(10)
            #expect(driver.wait(until: second, into: ready) == .woke)
            #expect(driver.now >= second)
            // A deadline that has passed already.
            let third = driver.now + .milliseconds(1)
            _ = driver.wait(until: third, into: ready)
            let fourth = driver.now + .milliseconds(5)
            #expect(driver.wait(until: fourth, into: ready) == .woke)
            #expect(driver.now >= fourth)
        }
    }

    private static func earlierDeadline(_ subject: DriverSubject) throws {
        try subject.run { driver in
            let ready = ReadyQueue()
            let late = driver.now + .seconds(3600)
            driver.waker.wake()
            _ = driver.wait(until: late, into: ready)
            #expect(driver.now < late)
            let deadline = driver.now + .milliseconds(2)
            #expect(driver.wait(until: deadline, into: ready) == .woke)
            #expect(driver.now >= deadline)
        }
    }

    private static func wakeFromThread(_ subject: DriverSubject) throws {
        try subject.run { driver, world in
            let waker = driver.waker
            let thread = LoopThread(name: "waker", in: world) { loop in
                // Later than the beginning of the wait: on virtual time certainly, on the real clock almost.
                _ = loop.driver.wait(until: loop.now + .milliseconds(20), into: ReadyQueue())
                waker.wake()
            }
            #expect(driver.wait(until: .distantFuture, into: ReadyQueue()) == .woke)
            thread.join()
        }
    }

    private static func wakeBeforeWait(_ subject: DriverSubject) throws {
        try subject.run { driver, world in
            driver.waker.wake()
            #expect(driver.wait(until: .distantFuture, into: ReadyQueue()) == .woke)
            let waker = driver.waker
            LoopThread(name: "waker", in: world) { _ in waker.wake() }.join()
            #expect(driver.wait(until: .distantFuture, into: ReadyQueue()) == .woke)
        }
    }

    private static func wakeBeforeDriver(_ subject: DriverSubject) throws {
        try subject.run { _, world in
            let seat = try! world.makeSeat(named: "late", isService: false)
            seat.waker.wake()
            let hasWoken = Flag()
            let thread = PlainThread {
                // Gone before the seat is left.
                do {
                    let driver = seat.take()
                    if driver.wait(until: .distantFuture, into: ReadyQueue()) == .woke { hasWoken.set() }
                }
                seat.leave()
            }
            seat.join()
            thread.join()
            #expect(hasWoken.isSet)
        }
    }

    private static func wakesMerge(_ subject: DriverSubject) throws {
        try subject.run { driver in
            let ready = ReadyQueue()
            for _ in 0..<10 { driver.waker.wake() }
            #expect(driver.wait(until: .distantFuture, into: ready) == .woke)
            let deadline = driver.now + .milliseconds(5)
            #expect(driver.wait(until: deadline, into: ready) == .woke)
            #expect(driver.now >= deadline)
            #expect(ready.isEmpty)
        }
    }

    private static func wakesInARow(_ subject: DriverSubject) throws {
        try subject.run { driver, world in
            let waker = driver.waker
            let sent = Atomic(0)
            let thread = LoopThread(name: "waker", in: world) { loop in
                for _ in 0..<1000 {
                    sent.add(1, ordering: .releasing)
                    waker.wake()
                    sched_yield()
                }
            }
            while sent.load(ordering: .acquiring) < 1000 {
                #expect(driver.wait(until: .distantFuture, into: ReadyQueue()) == .woke)
            }
            thread.join()
        }
    }

    private static func lateWake(_ subject: DriverSubject) throws {
        var waker: (any Waker)?
        try subject.run { waker = $0.waker }
        waker?.wake()
        waker?.wake()
    }

    private static func sharedClock(_ subject: DriverSubject) throws {
        try subject.run { driver, world in
            let before = driver.now
            let read = Locked(RunLoop.Instant.distantPast)
            let thread = LoopThread(name: "reader", in: world) { loop in
                _ = loop.driver.wait(until: loop.now + .milliseconds(2), into: ReadyQueue())
                read.withLock { $0 = loop.now }
            }
            thread.join()
            let there = read.withLock { $0 }
            #expect(before + .milliseconds(2) <= there)
            #expect(there <= driver.now)
        }
    }

    private static func wallClock(_ subject: DriverSubject) throws {
        try subject.run { driver, _, setWallClock in
            let token = SourceToken(0)
            driver.watchWallClock(token: token)
            for _ in 0..<2 {
                guard setWallClock() else { return }
                #expect(driver.look(for: .seconds(10)) == [Found(token: token, events: .readable)])
                // Others may set the system's clock meanwhile, but not each time.
                #expect((0..<10).contains { _ in driver.look(for: .milliseconds(2)) == [] })
            }
            driver.unwatch(token)
            #expect(setWallClock())
            #expect(driver.look(for: .milliseconds(2)) == [])
        }
    }
}
