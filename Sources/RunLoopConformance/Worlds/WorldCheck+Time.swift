internal import Glibc
@_spi(Ports) internal import RunLoopCore
internal import TestSupport
internal import Testing

extension WorldCheck {
    static let ofTime = [
        WorldCheck("a time of the wall clock is an instant, which is never early", instants),
        WorldCheck("the wall clock advances while a thread waits", wallClock),
        WorldCheck("on virtual time, the time stands still while a thread works", standsStill),
        WorldCheck("on virtual time, a wait that nothing can end is starved, and takes no time", starved),
        WorldCheck("virtual time is held for an event outside; real time is not", holds),
    ]

    private static func instants(_ subject: WorldSubject) throws {
        try subject.run { driver, world in
            let before = driver.now
            let wallTime = world.wallTime
            #expect(world.instant(of: wallTime) <= driver.now)
            #expect(world.instant(of: wallTime - .seconds(3600)) <= driver.now)
            for distance in [Duration.zero, .milliseconds(1), .seconds(3600), .seconds(86_400 * 365)] {
                let instant = world.instant(of: wallTime + distance)
                #expect(before + distance <= instant && instant <= driver.now + distance, "\(distance)")
                if world.isVirtual { #expect(instant == before + distance) }
            }
        }
    }

    private static func wallClock(_ subject: WorldSubject) throws {
        try subject.run { driver, world in
            let before = world.wallTime
            _ = driver.wait(until: driver.now + .milliseconds(5), into: ReadyQueue())
            let passed = world.wallTime - before
            #expect(passed >= .milliseconds(5))
            if world.isVirtual { #expect(passed == .milliseconds(5)) }
        }
    }

    private static func standsStill(_ subject: WorldSubject) throws {
        try subject.run { driver, world in
            guard world.isVirtual else { return }
            let start = driver.now
            let end = Locked(RunLoop.Instant.distantFuture)
            let thread = LoopThread(name: "worker", in: world) { loop in
                usleep(5000)
                end.withLock { $0 = loop.now }
            }
            #expect(driver.wait(until: start + .seconds(3600), into: ReadyQueue()) == .woke)
            #expect(driver.now == start + .seconds(3600))
            thread.join()
            #expect(end.withLock { $0 } == start)
        }
    }

    private static func starved(_ subject: WorldSubject) throws {
        try subject.run { driver, world in
            guard world.isVirtual else { return }
            let start = driver.now
            for _ in 0..<2 { #expect(driver.wait(until: .distantFuture, into: ReadyQueue()) == .starved) }
            #expect(driver.now == start)
            #expect(driver.wait(until: start + .seconds(1), into: ReadyQueue()) == .woke)
        }
    }

    private static func holds(_ subject: WorldSubject) throws {
        try subject.run { driver, world in
            let start = driver.now
            guard let hold = world.holdTime(for: "an answer") else {
                #expect(!world.isVirtual)
                return
            }
            #expect(world.isVirtual)
            let (waker, end) = (driver.waker, Locked(RunLoop.Instant.distantFuture))
            let outside = PlainThread {
                usleep(5000)
                end.withLock { $0 = waker.now }
                hold.release()
                hold.release()
            }
            #expect(driver.wait(until: start + .seconds(3600), into: ReadyQueue()) == .woke)
            #expect(driver.now == start + .seconds(3600))
            outside.join()
            #expect(end.withLock { $0 } == start)
        }
    }
}
