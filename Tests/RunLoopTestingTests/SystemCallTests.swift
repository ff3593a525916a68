import Dispatch
import Foundation
import Glibc
import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopTesting
import TestSupport
import Testing

private typealias RunLoop = RunLoopKit.RunLoop
private typealias Timer = RunLoopKit.Timer

/// Returns the seconds that a clock of the C library shows.
private func seconds(of clock: clockid_t) -> Double {
    var time = timespec()
    clock_gettime(clock, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}

/// Code not written for simulations, which asks the C library for times, sleeps and random numbers.
@Suite("Calls of the C library on simulated threads")
struct SystemCallTests {
    @Test("a look for the clocks of the vDSO is reported as an escape")
    func vDSO() throws {
        typealias Find = @convention(c) (UInt) -> UInt
        let find = unsafeBitCast(try #require(dlsym(nil, "getauxval")), to: Find.self)
        let (pageSize, sharedObject) = (6 as UInt, 33 as UInt)
        withSimulation { simulation in
            simulation.captureExecutors()
            #expect(find(pageSize) == sysconf(Int32(_SC_PAGESIZE)))
            #expect(simulation.isReproducible)
            _ = find(sharedObject)
            #expect(simulation.escapes.count == 1)
            #expect(simulation.escapes[0].contains("looks for the clocks of the vDSO, which are real"))
            #expect(!simulation.isReproducible)
        }
    }

    /// `false` with a sanitizer: sanitizers call the kernel themselves, so nothing is dispatched beside them.
    private static let dispatches = dlsym(nil, "__asan_init") == nil && dlsym(nil, "__tsan_init") == nil

    #if arch(x86_64)
    @Test("instructions that call the kernel are answered as calls are", .enabled(if: dispatches))
    func instructions() throws {
        // A function of a number and three arguments, which it moves to the registers of the kernel before it calls it.
        let code: [UInt8] = [
            0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0x48, 0x89, 0xd6, 0x48, 0x89, 0xca, 0x0f, 0x05, 0xc3,
        ]
        let page = try #require(mmap(nil, 4_096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
        defer { munmap(page, 4_096) }
        page.copyMemory(from: code, byteCount: code.count)
        #expect(mprotect(page, 4_096, PROT_READ | PROT_EXEC) == 0)
        typealias Call = @convention(c) (Int, Int, UnsafeMutableRawPointer?, Int) -> Int
        let call = unsafeBitCast(page, to: Call.self)
        let (clock, sleep, number, random) = (228, 35, 39, 318)
        func now() -> Int {
            var time = timespec()
            #expect(call(clock, Int(CLOCK_MONOTONIC), &time, 0) == 0)
            return time.tv_sec
        }
        func numbers(seed: UInt64) -> UInt64 {
            withSimulation(seed: seed) { simulation in
                simulation.captureExecutors()
                var (time, drawn) = (timespec(tv_sec: 90, tv_nsec: 0), UInt64(0))
                #expect(now() == 3_600)
                withUnsafeMutablePointer(to: &time) { _ = call(sleep, Int(bitPattern: $0), nil, 0) }
                #expect(now() == 3_690)
                // Other calls are real, and so are their errors.
                #expect(call(number, 0, nil, 0) == Int(getpid()) && call(clock, 99, nil, 0) == Int(-EINVAL))
                withUnsafeMutablePointer(to: &drawn) {
                    #expect(call(random, Int(bitPattern: $0), UnsafeMutableRawPointer(bitPattern: 8), 0) == 8)
                }
                return drawn
            }
        }
        #expect(numbers(seed: 1) == numbers(seed: 1))
        #expect(numbers(seed: 1) != numbers(seed: 2))
        // Outside of a simulation, the machine's own clock.
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        #expect(abs(now() - time.tv_sec) <= 60)
    }
    #endif

    @Test("every clock shows the simulation's time")
    func clocks() {
        withSimulation(startingAt: .init(secondsSince1970: 1_000_000_000)) { simulation in
            simulation.captureExecutors()
            let (continuous, suspending) = (ContinuousClock.now, SuspendingClock.now)
            let (dispatch, date) = (DispatchTime.now(), Date())
            #expect(date.timeIntervalSince1970 == 1_000_000_000)
            #expect(dispatch.uptimeNanoseconds == 3_600_000_000_000)
            simulation.advance(by: .milliseconds(90_500))
            #expect(ContinuousClock.now - continuous == .milliseconds(90_500))
            #expect(SuspendingClock.now - suspending == .milliseconds(90_500))
            #expect(DispatchTime.now().uptimeNanoseconds - dispatch.uptimeNanoseconds == 90_500_000_000)
            #expect(Date().timeIntervalSince(date) == 90.5)
            #expect(ProcessInfo.processInfo.systemUptime == 3690.5)
            for clock in [CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_MONOTONIC_COARSE, CLOCK_BOOTTIME] {
                #expect(seconds(of: clock) == 3690.5)
            }
            for clock in [CLOCK_REALTIME, CLOCK_REALTIME_COARSE] { #expect(seconds(of: clock) == 1_000_000_090.5) }
            #expect(seconds(of: CLOCK_PROCESS_CPUTIME_ID) == 90.5 && clock() == 90_500_000)
            #expect(time(nil) == 1_000_000_090)
            var time = timeval()
            gettimeofday(&time, nil)
            #expect(time.tv_sec == 1_000_000_090 && time.tv_usec == 500_000)
        }
    }

    @Test(
        "a machine that sleeps moves the continuous clock, and not the suspending one; a clock that is set moves neither"
    )
    func machineSleeps() {
        withSimulation { simulation in
            simulation.captureExecutors()
            let (continuous, suspending, date) = (ContinuousClock.now, SuspendingClock.now, Date())
            simulation.sleepMachine(for: .seconds(60))
            simulation.wallTime = simulation.wallTime + .seconds(7)
            #expect(ContinuousClock.now - continuous == .seconds(60) && SuspendingClock.now == suspending)
            #expect(Date().timeIntervalSince(date) == 67)
        }
    }

    @Test("each host has its own wall clock; threads outside of a simulation have the real one")
    func hosts() {
        let real = Date()
        withSimulation { simulation in
            simulation.captureExecutors()
            let network = SimulatedNetwork(simulation)
            let log = Log<Double>()
            let host = network.addHost("late") { loop in
                loop.perform(afterDelay: .seconds(10)) { log.append(Date().timeIntervalSinceReferenceDate) }
            }
            host.wallTime = simulation.wallTime - .seconds(100)
            simulation.advance(by: .seconds(20))
            #expect(log.entries == [-90] && Date().timeIntervalSinceReferenceDate == 20)
            let outside = Log<Date>()
            let thread = PlainThread { outside.append(Date()) }
            thread.join()
            #expect(outside.entries[0] >= real)
        }
        #expect(Date() >= real)
    }

    @Test("sleeps block their thread in virtual time")
    func sleeps() {
        withSimulation { simulation in
            simulation.captureExecutors()
            let log = Log<String>()
            let worker = LoopThread(name: "worker") { loop in
                loop.add(
                    Timer(timeInterval: .seconds(1), repeats: true) { _ in log("\(simulation.now)") }, forMode: .default
                )
            }
            usleep(500_000)
            #expect(simulation.now == RunLoop.Instant(nanoseconds: 500_000_000))
            Foundation.Thread.sleep(forTimeInterval: 1)
            sleep(1)
            var pause = timespec(tv_sec: 0, tv_nsec: 250_000_000)
            nanosleep(&pause, nil)
            clock_nanosleep(CLOCK_BOOTTIME, 0, &pause, nil)
            #expect(simulation.now == RunLoop.Instant(nanoseconds: 3_000_000_000))
            var end = timespec(tv_sec: 3604, tv_nsec: 0)
            clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, nil)
            Foundation.Thread.sleep(until: Date() + 1)
            #expect(simulation.now == RunLoop.Instant(nanoseconds: 5_000_000_000))
            #expect(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, nil) == 0, "it has passed")
            #expect(simulation.now == RunLoop.Instant(nanoseconds: 5_000_000_000))
            simulation.yield()
            #expect(log.entries == (1...5).map { "\($0).000000000" })
            worker.stop()
        }
    }

    @Test("a wait for a condition ends at its limit, or when another thread signals it")
    func conditions() {
        withSimulation { simulation in
            simulation.captureExecutors()
            let condition = NSCondition()
            condition.lock()
            #expect(!condition.wait(until: Date() + 2))
            #expect(simulation.now == RunLoop.Instant(nanoseconds: 2_000_000_000))
            let worker = LoopThread(name: "worker") { loop in
                loop.perform(afterDelay: .seconds(1)) {
                    condition.lock()
                    condition.broadcast()
                    // The thread keeps the lock for a while.
                    simulation.spend(.milliseconds(1))
                    condition.unlock()
                }
            }
            #expect(condition.wait(until: Date() + 3600))
            #expect(simulation.now >= RunLoop.Instant(nanoseconds: 3_001_000_000))
            #expect(simulation.now < RunLoop.Instant(nanoseconds: 3_010_000_000))
            condition.unlock()
            worker.join()
        }
    }

    @Test("a wait for a semaphore ends at its limit, or when another thread signals it")
    func semaphores() {
        withSimulation { simulation in
            simulation.captureExecutors()
            let semaphore = DispatchSemaphore(value: 0)
            #expect(semaphore.wait(timeout: .now() + 2) == .timedOut)
            #expect(semaphore.wait(wallTimeout: .now() + 2) == .timedOut)
            #expect(simulation.now == RunLoop.Instant(nanoseconds: 4_000_000_000))
            let worker = LoopThread(name: "worker") { loop in
                loop.perform(afterDelay: .seconds(1)) { semaphore.signal() }
            }
            #expect(semaphore.wait(timeout: .now() + 3600) == .success)
            #expect(simulation.now == RunLoop.Instant(nanoseconds: 5_000_000_000))
            semaphore.signal()
            #expect(semaphore.wait(timeout: .now()) == .success)
            worker.join()
        }
    }

    @Test("a signal from a thread outside of the simulation ends a wait")
    func signalledFromOutside() {
        withSimulation { simulation in
            simulation.captureExecutors()
            let semaphore = DispatchSemaphore(value: 0)
            let hold = simulation.hold(for: "the signal of a thread outside", limit: .seconds(100))
            let thread = PlainThread {
                usleep(1000)
                semaphore.signal()
            }
            #expect(semaphore.wait(timeout: .now() + 3600) == .success)
            #expect(simulation.now == RunLoop.Instant(nanoseconds: 0))
            hold.release()
            thread.join()
        }
    }

    @Test("locks, groups and joins wait for threads outside in real time; signal sources of Dispatch come from outside")
    func outside() {
        let (lock, group) = (NSLock(), DispatchGroup())
        let isHeld = DispatchSemaphore(value: 0), received = DispatchSemaphore(value: 0)
        let source = DispatchSource.makeSignalSource(signal: SIGURG)
        group.enter()
        let holder = PlainThread {
            lock.withLock {
                isHeld.signal()
                usleep(20_000)
            }
            usleep(20_000)
            group.leave()
        }
        isHeld.wait()
        withSimulation { simulation in
            simulation.captureExecutors()
            lock.withLock {}
            group.wait()
            holder.join()
            source.setEventHandler { received.signal() }
            source.resume()
            #expect(simulation.now.nanoseconds == 0)
        }
        // The source begins to watch at a time of its own; a signal before that is ignored.
        let end = ContinuousClock.now + .seconds(60)
        repeat { kill(getpid(), SIGURG) } while received.wait(timeout: .now() + 0.01) != .success && .now < end
        #expect(ContinuousClock.now < end)
        source.cancel()
    }

    @Test("a poll with a limit waits in real time")
    func polls() {
        let begin = SuspendingClock.now
        withSimulation { simulation in
            simulation.captureExecutors()
            poll(nil, 0, 20)
            #expect(simulation.now.nanoseconds == 0)
        }
        #expect(SuspendingClock.now - begin >= .milliseconds(20))
    }

    @Test("timers of Dispatch wait as long in real time")
    func dispatchTimers() {
        let waits = (0..<2).map { _ in DispatchSemaphore(value: 0) }
        // Each by the clock of its timer: a wall clock may be set.
        let (begin, date) = (SuspendingClock.now, Date())
        withSimulation { simulation in
            simulation.captureExecutors()
            simulation.advance(by: .seconds(100))
            let queue = DispatchQueue.global()
            queue.asyncAfter(deadline: .now() + .milliseconds(50)) { waits[0].signal() }
            queue.asyncAfter(wallDeadline: .now() + .milliseconds(50)) { waits[1].signal() }
        }
        #expect(waits[0].wait(timeout: .now() + 60) == .success)
        #expect(SuspendingClock.now - begin >= .milliseconds(50))
        #expect(waits[1].wait(timeout: .now() + 60) == .success)
        #expect(Date().timeIntervalSince(date) >= 0.0499)
    }

    /// Returns numbers from all of the system's random generators.
    private static func numbers() -> [UInt64] {
        var numbers = (0..<3).map { _ in UInt64.random(in: 0 ... .max) }
        numbers.append(UInt64(UUID().uuidString.utf8.reduce(0) { $0 &* 31 &+ Int($1) }.magnitude))
        func add(_ fill: (UnsafeMutablePointer<UInt64>) -> Void) {
            var number = UInt64(0)
            fill(&number)
            numbers.append(number)
        }
        add { _ = getentropy($0, 8) }
        add { $0.pointee = UInt64(arc4random()) << 32 | UInt64(arc4random_uniform(1 << 31)) }
        add { pointer in
            let file = open("/dev/urandom", O_RDONLY)
            defer { close(file) }
            _ = read(file, pointer, 8)
        }
        add { pointer in
            let file = fopen("/dev/random", "r")!
            defer { fclose(file) }
            fread(pointer, 8, 1, file)
        }
        return numbers + [UInt64([1, 2, 3, 4, 5, 6, 7, 8, 9].shuffled().reduce(0) { $0 * 10 + $1 })]
    }

    @Test("the system's random numbers follow from the seed, for each host by itself")
    func chance() {
        func run(seed: UInt64) -> [[UInt64]] {
            withSimulation(seed: seed) { simulation in
                simulation.captureExecutors()
                let log = Log<[UInt64]>()
                SimulatedNetwork(simulation).addHost("server") { _ in log.append(Self.numbers()) }
                simulation.advance(by: .seconds(1))
                return log.entries + [Self.numbers()]
            }
        }
        let (first, again, other) = (run(seed: 1), run(seed: 1), run(seed: 2))
        #expect(first == again)
        #expect(Set((first + other).joined()).count == first.joined().count + other.joined().count)
        #expect(Self.numbers() != Self.numbers())
    }
}
