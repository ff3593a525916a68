internal import Glibc
@_spi(Ports) internal import RunLoopCore
internal import Synchronization
internal import TestSupport
internal import Testing

extension WorldCheck {
    static let ofThreads = [
        WorldCheck("a thread at a seat has a loop of the world, on its clock", loopOfWorld),
        WorldCheck("a thread that has been joined has released what its loop kept", joined),
        WorldCheck("threads come and go", comeAndGo),
        WorldCheck("threads of a world hand on work, and none is lost", handOn),
        WorldCheck("a service is the last to learn that nothing can happen any more", service),
    ]

    private static func loopOfWorld(_ subject: WorldSubject) throws {
        try subject.run { driver, world in
            let before = driver.now
            let seat = try world.makeSeat(named: "sitter", isService: false)
            #expect(seat.world === world)
            let there = Locked(RunLoop.Instant.distantPast)
            let isSame = Flag()
            let thread = try LoopThread(name: "sitter", at: seat) { loop in
                if loop.world === world && loop.isVirtual == world.isVirtual { isSame.set() }
                there.withLock { $0 = loop.now }
            }
            thread.join()
            #expect(isSame.isSet)
            let time = there.withLock { $0 }
            #expect(before <= time && time <= driver.now)
        }
    }

    private static func joined(_ subject: WorldSubject) throws {
        try subject.run { _, world in
            let kept = Locked<Weak<Flag>?>(nil)
            for isService in [false, true] {
                let thread = LoopThread(name: "keeper", in: world, isService: isService) { loop in
                    let flag = Flag()
                    kept.withLock { $0 = Weak(flag) }
                    loop.perform(afterDelay: .milliseconds(1)) { flag.set() }
                    loop.perform(afterDelay: .seconds(3600)) { flag.set() }
                    loop.perform(afterDelay: .milliseconds(2)) { loop.stop() }
                }
                thread.join()
                thread.join()
                #expect(kept.withLock { $0!.isGone })
            }
        }
    }

    private static func comeAndGo(_ subject: WorldSubject) throws {
        try subject.run { driver, world in
            let count = Atomic(0)
            for number in 0..<20 {
                let pair = (0..<2).map { _ in
                    LoopThread(name: "passer", in: world, isService: number % 2 == 0) { loop in
                        _ = loop.driver.wait(until: loop.now + .microseconds(100), into: ReadyQueue())
                        count.add(1, ordering: .relaxed)
                    }
                }
                for thread in pair { thread.join() }
            }
            #expect(count.load(ordering: .relaxed) == 40)
        }
    }

    private static func handOn(_ subject: WorldSubject) throws {
        try subject.run { (loop: RunLoop) in
            let idle = CustomSource { _ in }
            loop.add(idle, forMode: .default)
            let threads = (0..<4).map { number in
                LoopThread(name: "hand \(number)", in: loop.world) { $0.add(CustomSource { _ in }, forMode: .default) }
            }
            let (home, remotes) = (loop.remote, threads.map(\.remote))
            @Sendable func handOn(_ rest: Int) {
                if rest == 0 {
                    home.stop()
                } else {
                    remotes[rest % remotes.count].perform { _ in handOn(rest - 1) }
                }
            }
            handOn(1000)
            #expect(loop.run(in: .default) == .stopped)
            idle.invalidate()
            for thread in threads { thread.stop() }
            for thread in threads { thread.join() }
        }
    }

    private static func service(_ subject: WorldSubject) throws {
        try subject.run { _, world in
            guard world.isVirtual else { return }
            let log = Log<String>()
            // The service is the first to wait.
            let threads = [true, false].map { isService in
                let name = isService ? "service" : "client"
                return LoopThread(name: name, in: world, isService: isService) { loop in
                    log.append("\(name): \(loop.driver.wait(until: .distantFuture, into: ReadyQueue()))")
                }
            }
            for thread in threads.reversed() { thread.join() }
            #expect(log.entries == ["client: starved", "service: starved"])
        }
    }
}
