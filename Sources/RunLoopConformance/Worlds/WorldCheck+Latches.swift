internal import Glibc
@_spi(Ports) internal import RunLoopCore
internal import TestSupport
internal import Testing

extension WorldCheck {
    static let ofLatches = [
        WorldCheck("a latch that is open lets its thread pass, and opening it again is harmless", open),
        WorldCheck("a latch keeps its thread until another one opens it", opened),
        WorldCheck("each of several latches is opened by its own thread", several),
        WorldCheck("on virtual time, a latch that nothing can open any more says so once, and can be opened", closed),
    ]

    private static func open(_ subject: WorldSubject) throws {
        try subject.run { driver, world in
            let latch = world.makeLatch(openedBy: driver.waker)
            latch.open()
            latch.open()
            #expect(latch.wait())
        }
    }

    /// Starts a thread that opens a latch of the calling thread after `delay`.
    private static func makeLatch(
        in world: any World, openedAfter delay: Duration
    ) throws -> (latch: any Latch, thread: LoopThread) {
        let seat = try world.makeSeat(named: "opener", isService: false)
        let latch = world.makeLatch(openedBy: seat.waker)
        let thread = try LoopThread(name: "opener", at: seat) { loop in
            _ = loop.driver.wait(until: loop.now + delay, into: ReadyQueue())
            latch.open()
        }
        return (latch, thread)
    }

    private static func opened(_ subject: WorldSubject) throws {
        try subject.run { driver, world in
            let start = driver.now
            // Long enough that on a busy machine, too, a latch that is open is found before the other thread opens it.
            let delay = Duration.milliseconds(200)
            let (latch, thread) = try makeLatch(in: world, openedAfter: delay)
            #expect(latch.wait())
            #expect(driver.now >= start + delay)
            if world.isVirtual { #expect(driver.now == start + delay) }
            thread.join()
        }
    }

    private static func several(_ subject: WorldSubject) throws {
        try subject.run { driver, world in
            let start = driver.now
            let openers = try [1, 3, 2].map { try makeLatch(in: world, openedAfter: .milliseconds($0)) }
            for (opener, delay) in zip(openers, [1, 3, 2]) {
                #expect(opener.latch.wait())
                #expect(driver.now >= start + .milliseconds(delay))
                opener.thread.join()
            }
        }
    }

    private static func closed(_ subject: WorldSubject) throws {
        try subject.run { driver, world in
            guard world.isVirtual else { return }
            let start = driver.now
            let seat = try world.makeSeat(named: "opener", isService: true)
            let latch = world.makeLatch(openedBy: seat.waker)
            let thread = try LoopThread(name: "opener", at: seat) { loop in
                if loop.driver.wait(until: .distantFuture, into: ReadyQueue()) == .woke { latch.open() }
            }
            #expect(!latch.wait())
            #expect(driver.now == start)
            seat.waker.wake()
            #expect(latch.wait())
            thread.join()
        }
    }
}
