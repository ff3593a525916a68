import Glibc
@_spi(Ports) import RunLoopCore
import TestSupport
import Testing

@testable import RunLoopLibevent

@Suite("Whole loops on the real clock", .timeLimit(.minutes(15)))
struct RealLoopTests {
    @Test("a timer is never early, on 200 random deadlines, with tolerance and without")
    func neverEarly() {
        let loop = RunLoop.real()
        let seed = UInt64.random(in: 0 ... .max)
        var random = SeededGenerator(seed: seed)
        var early: [Duration] = []
        var fired = 0
        for number in 0..<200 {
            let deadline = loop.now + .nanoseconds(Int64.random(in: 0...150_000_000, using: &random))
            let timer = Timer(fire: deadline, interval: .zero, repeats: false) { _ in
                let now = loop.now
                if now < deadline { early.append(deadline - now) }
                fired += 1
            }
            if number % 3 == 0 { timer.tolerance = .microseconds(Int.random(in: 1...5000, using: &random)) }
            loop.add(timer, forMode: .default)
        }
        #expect(loop.run(in: .default) == .finished)
        #expect(early.isEmpty, "seed \(seed)")
        #expect(fired == 200)
    }

    @Test("a repeating timer is never early on its grid")
    func neverEarlyOnGrid() {
        let loop = RunLoop.real()
        let start = loop.now + .milliseconds(1)
        var early = 0
        var offGrid = 0
        var fired = 0
        let timer = Timer(fire: start, interval: .microseconds(700), repeats: true) { timer in
            if loop.now < timer.fireDate { early += 1 }
            if (timer.fireDate - start).nanoseconds % 700_000 != 0 { offGrid += 1 }
            fired += 1
            if fired == 50 { timer.invalidate() }
        }
        loop.add(timer, forMode: .default)
        #expect(loop.run(in: .default) == .finished)
        #expect(fired == 50)
        #expect(early == 0)
        #expect(offGrid == 0)
    }

    @Test("a run does not end before its limit")
    func limit() {
        let loop = RunLoop.real()
        loop.add(CustomSource(), forMode: .default)
        for _ in 0..<20 {
            let limit = loop.now + .microseconds(500)
            #expect(loop.run(in: .default, until: limit) == .timedOut)
            #expect(loop.now >= limit)
        }
    }

    @Test("ten posts to a sleeping loop wake it once")
    func tenPosts() {
        let waker = try! EventWaker()
        let counting = CountingWaker(waker)
        let remote = RunLoop.Remote(waker: counting)
        let allPosted = Flag()
        let waitsSeen = Log<Int>()
        let thread = PlainThread {
            let loop = RunLoop.real(waker: waker, remote: remote)
            loop.add(CustomSource(), forMode: .default)
            loop.run(in: .default)
        }
        while !remote.isWaiting { sched_yield() }
        for number in 0..<10 {
            remote.perform { loop in
                // The first one holds the loop until all are there, so that it cannot fall asleep between two of them.
                while number == 0 && !allPosted.isSet { sched_yield() }
                waitsSeen.append(loop.statistics.waits)
            }
        }
        allPosted.set()
        while waitsSeen.entries.count < 10 { sched_yield() }
        #expect(counting.count == 1)
        #expect(Set(waitsSeen.entries) == [1])
        remote.stop()
        thread.join()
    }

    @Test("a wake-up is not lost when the counter of the waker's descriptor is full")
    func fullCounter() throws {
        let waker = try EventWaker()
        let remote = RunLoop.Remote(waker: waker)
        let thread = PlainThread {
            let loop = RunLoop.real(waker: waker, remote: remote)
            loop.add(CustomSource(), forMode: .default)
            for _ in 0..<4 { loop.run(in: .default) }
        }
        for _ in 0..<4 {
            guard eventually("the loop was not woken", { remote.isWaiting }) else { return }
            // Wakes the loop, or finds the counter full already.
            var most = UInt64.max - 1
            _ = write(waker.descriptor, &most, 8)
            usleep(1000)
            remote.stop()
        }
        thread.join()
    }

    @Test("a waker whose descriptor was closed by other code ends the process, with a sentence")
    func closedWaker() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let waker = try EventWaker()
            close(waker.descriptor)
            waker.wake()
        }
        #expect(says("the run loop cannot be woken, because other code has closed its descriptor", result))
    }

    @Test("a readable descriptor out of its mode does not spin the loop, and is served when its mode runs")
    func outOfMode() throws {
        let loop = RunLoop.real()
        let pipe = DescriptorPair()
        defer { withExtendedLifetime(pipe) {} }
        pipe.write()
        var served = 0
        let source = DescriptorSource(fileDescriptor: pipe.reader, events: .readable) { source, _ in
            served += 1
            source.invalidate()
        }
        try loop.add(source, forMode: .tracking)
        loop.add(CustomSource(), forMode: .default)
        #expect(loop.run(in: .default, until: loop.now + .milliseconds(100)) == .timedOut)
        #expect(served == 0)
        #expect(loop.statistics.parks == 1)
        // One sleep that the descriptor ended, one until the limit.
        #expect(loop.statistics.waits == 2)
        #expect(loop.statistics.passes <= 3)
        #expect(loop.run(in: .tracking, until: loop.now + .seconds(3600)) == .finished)
        #expect(served == 1)
    }

    @Test("a hang-up out of its mode does not spin the loop")
    func hangUpOutOfMode() throws {
        let loop = RunLoop.real()
        let pipe = DescriptorPair()
        defer { withExtendedLifetime(pipe) {} }
        pipe.closeWriter()
        let source = DescriptorSource(fileDescriptor: pipe.reader, events: .readable) { _, _ in }
        try loop.add(source, forMode: .tracking)
        loop.add(CustomSource(), forMode: .default)
        for _ in 0..<5 { loop.run(in: .default, until: loop.now + .milliseconds(20)) }
        #expect(loop.statistics.parks == 1)
        #expect(loop.statistics.waits == 6)
        loop.checkInvariants()
    }

    @Test("a descriptor whose handler runs the loop does not spin that run, and is served again afterwards")
    func nestedRun() throws {
        let loop = RunLoop.real()
        let pipe = DescriptorPair()
        defer { withExtendedLifetime(pipe) {} }
        pipe.write()
        var depth = 0
        var deepest = 0
        var served = 0
        var waitsInside = 0
        let source = DescriptorSource(fileDescriptor: pipe.reader, events: .readable) { source, _ in
            depth += 1
            deepest = max(deepest, depth)
            served += 1
            let before = loop.statistics.waits
            if served == 1 { loop.run(in: .default, until: loop.now + .milliseconds(50)) }
            waitsInside += loop.statistics.waits - before
            if served == 2 { source.invalidate() }
            depth -= 1
        }
        try loop.add(source, forMode: .default)
        #expect(loop.run(in: .default, until: loop.now + .seconds(3600)) == .finished)
        #expect(served == 2)
        #expect(deepest == 1)
        #expect(waitsInside <= 2)
    }

    @Test("a closed descriptor and a regular file are refused by the loop, and leave nothing behind")
    func refused() {
        let loop = RunLoop.real()
        let file = open("/proc/self/exe", O_RDONLY)
        defer { close(file) }
        let expected: [(Int32, DescriptorError)] = [(1_000_000, .notOpen(1_000_000)), (file, .notPollable(file))]
        for (descriptor, error) in expected {
            let source = DescriptorSource(fileDescriptor: descriptor, events: .readable) { _, _ in }
            #expect(throws: error) { try loop.add(source, forMode: .default) }
        }
        #expect(loop.run(in: .default) == .finished)
        loop.checkInvariants()
    }

    @Test("a thousand loops made and torn down on threads leak no descriptor")
    func descriptorsOfThreads() async {
        // In a process of its own: other tests open and close descriptors meanwhile.
        await #expect(processExitsWith: .success) {
            func makeAndTearDown(_ count: Int) {
                for number in 0..<count {
                    let thread = LoopThread(name: "short", in: RealWorld.shared) { loop in
                        loop.add(Timer(fire: loop.now, interval: .zero, repeats: false) { _ in }, forMode: .default)
                    }
                    if number % 2 == 0 { thread.remote.wakeUp() }
                    thread.join()
                    // A loop that ends with its thread, with a source that is still watched.
                    PlainThread {
                        let pipe = DescriptorPair()
                        defer { withExtendedLifetime(pipe) {} }
                        let loop = RunLoop.real()
                        RunLoop.install(loop)
                        let source = DescriptorSource(fileDescriptor: pipe.reader, events: .readable) { _, _ in }
                        try? loop.add(source, forMode: .default)
                        loop.run(in: .default, until: .distantPast)
                        source.invalidate()
                    }.join()
                }
            }
            makeAndTearDown(250)
            let before = openDescriptors()
            makeAndTearDown(250)
            precondition(before > 0, "the open descriptors cannot be counted")
            precondition(openDescriptors() == before, "\(openDescriptors()) descriptors are open, \(before) before")
        }
    }
}
