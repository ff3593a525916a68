import Dispatch
import Foundation
import Glibc
import RunLoopExploration
import RunLoopHosts
@_spi(Ports) import RunLoopKit
import RunLoopTesting
import Synchronization
import TestSupport
import Testing

@testable import RunLoopSimulation

private typealias RunLoop = RunLoopKit.RunLoop
private typealias Timer = RunLoopKit.Timer

/// A lock of the C library at an address of its own.
private final class PlainLock: @unchecked Sendable {
    let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    let lock = UnsafeMutablePointer<pthread_rwlock_t>.allocate(capacity: 1)

    init() {
        pthread_mutex_init(mutex, nil)
        pthread_rwlock_init(lock, nil)
    }
}

private final class Guarded: Sendable {
    let mutex = Mutex(0)
}

/// Takes a lock that a thread outside holds for a while, with the lock of the simulation's own state.
private func takeWithinTheSimulation() {
    alarm(20)
    withSimulation { simulation in
        simulation.captureExecutors()
        let (lock, isHeld) = (PlainLock(), Handoff())
        let holder = PlainThread {
            pthread_mutex_lock(lock.mutex)
            isHeld.signal()
            usleep(100_000)
            pthread_mutex_unlock(lock.mutex)
        }
        isHeld.wait()
        simulation.timeline.change { _ in
            pthread_mutex_lock(lock.mutex)
            pthread_mutex_unlock(lock.mutex)
        }
        holder.join()
    }
}

/// The kinds of locks, each with a function that calls a body while it holds the lock.
private enum Kind: String, CaseIterable, CustomTestStringConvertible {
    case mutex = "Swift's Mutex"
    case queue = "a queue of Dispatch"
    case plain = "a mutex of the C library"
    case recursive = "NSRecursiveLock"
    case writing = "a lock for writing"
    case readingAndWriting = "a lock for reading, and then for writing"

    var testDescription: String { rawValue }

    /// Makes the calls of the first thread and of the others.
    func make() -> (first: @Sendable (() -> Void) -> Void, others: @Sendable (() -> Void) -> Void) {
        switch self {
        case .mutex:
            let guarded = Guarded()
            let take: @Sendable (() -> Void) -> Void = { body in guarded.mutex.withLock { _ in body() } }
            return (take, take)
        case .queue:
            let queue = DispatchQueue(label: "queue")
            return ({ queue.sync(execute: $0) }, { queue.sync(execute: $0) })
        case .plain:
            let lock = NSLock()
            return ({ lock.withLock($0) }, { lock.withLock($0) })
        case .recursive:
            let lock = NSRecursiveLock()
            return ({ body in lock.withLock { lock.withLock(body) } }, { lock.withLock($0) })
        case .writing, .readingAndWriting:
            let lock = PlainLock()
            let write: @Sendable (() -> Void) -> Void = { body in
                pthread_rwlock_wrlock(lock.lock)
                body()
                pthread_rwlock_unlock(lock.lock)
            }
            guard self == .readingAndWriting else { return (write, write) }
            return (
                { body in
                    pthread_rwlock_rdlock(lock.lock)
                    body()
                    pthread_rwlock_unlock(lock.lock)
                }, write
            )
        }
    }
}

@Suite("Locks of simulated threads")
struct LockTests {
    @Test("a lock that a thread has over a sleep stops neither the others nor the time", arguments: Kind.allCases)
    private func heldOverSleep(_ kind: Kind) {
        withSimulation { simulation in
            simulation.captureExecutors()
            let (first, others) = kind.make()
            let log = Log<String>()
            let holder = LoopThread(name: "holder") { _ in
                first {
                    log("holder begins at \(simulation.now)")
                    sleep(10)
                }
            }
            let waiters = (1...2).map { number in
                LoopThread(name: "waiter \(number)") { _ in
                    sleep(UInt32(number))
                    others {
                        log("waiter \(number) begins at \(simulation.now)")
                        sleep(10)
                    }
                }
            }
            let clock = LoopThread(name: "clock") { loop in
                loop.perform(afterDelay: .seconds(5)) { log("the time goes on at \(simulation.now)") }
            }
            sleep(3)
            others { log("main begins at \(simulation.now)") }
            for thread in [holder, clock] + waiters { thread.join() }
            #expect(
                log.entries == [
                    "holder begins at 0.000000000", "the time goes on at 5.000000000",
                    "waiter 1 begins at 10.000000000",
                    "waiter 2 begins at 20.000000000", "main begins at 30.000000000",
                ])
            #expect(simulation.isReproducible)
        }
    }

    @Test("a lock of Swift's runtime that a thread outside holds may be taken within the simulation's own state")
    func withinTheSimulation() async {
        await #expect(processExitsWith: .success) { takeWithinTheSimulation() }
    }

    @Test("readers that wait for a writer continue together, before writers that came later")
    func readersGoOn() {
        withSimulation { simulation in
            simulation.captureExecutors()
            let (lock, log) = (PlainLock(), Log<String>())
            let names = ["late", "writer", "a", "other writer", "b"]
            let threads = names.enumerated().map { number, name in
                LoopThread(name: name) { _ in
                    usleep(name == "late" ? 5000 : UInt32(number) * 1000)
                    let isReader = name == "a" || name == "b"
                    _ = isReader ? pthread_rwlock_rdlock(lock.lock) : pthread_rwlock_wrlock(lock.lock)
                    log("\(name) at \(simulation.now)")
                    sleep(10)
                    pthread_rwlock_unlock(lock.lock)
                }
            }
            for thread in threads { thread.join() }
            #expect(
                log.entries == [
                    "writer at 0.001000000", "a at 10.001000000", "b at 10.001000000", "other writer at 20.001000000",
                    "late at 30.001000000",
                ])
        }
    }

    @Test("readers share a lock, and a writer waits for all of them")
    func readers() {
        withSimulation { simulation in
            simulation.captureExecutors()
            let (lock, log) = (PlainLock(), Log<String>())
            let threads = ["a", "b", "writer", "c"].enumerated().map { number, name in
                LoopThread(name: name) { _ in
                    usleep(UInt32(number) * 1000)
                    _ = name == "writer" ? pthread_rwlock_wrlock(lock.lock) : pthread_rwlock_rdlock(lock.lock)
                    log("\(name) at \(simulation.now)")
                    sleep(name == "writer" ? 10 : 1)
                    pthread_rwlock_unlock(lock.lock)
                }
            }
            for thread in threads { thread.join() }
            // The third reader comes before the writer, who has to wait.
            #expect(
                log.entries == [
                    "a at 0.000000000", "b at 0.001000000", "c at 0.003000000", "writer at 1.003000000",
                ])
        }
    }

    @Test("a wait for a lock with a limit ends at the limit in virtual time")
    func limits() {
        withSimulation { simulation in
            simulation.captureExecutors()
            let lock = PlainLock()
            let holder = LoopThread(name: "holder") { _ in
                pthread_mutex_lock(lock.mutex)
                pthread_rwlock_rdlock(lock.lock)
                sleep(100)
                pthread_rwlock_unlock(lock.lock)
                pthread_mutex_unlock(lock.mutex)
            }
            usleep(1000)
            func end() -> timespec { timespec(tv_sec: time(nil) + 10, tv_nsec: 0) }
            var limit = end()
            #expect(pthread_mutex_timedlock(lock.mutex, &limit) == ETIMEDOUT)
            #expect(simulation.now == RunLoop.Instant(nanoseconds: 10_000_000_000))
            limit = end()
            #expect(pthread_rwlock_timedwrlock(lock.lock, &limit) == ETIMEDOUT)
            #expect(simulation.now == RunLoop.Instant(nanoseconds: 20_000_000_000))
            limit = end()
            #expect(pthread_rwlock_timedrdlock(lock.lock, &limit) == 0)
            #expect(pthread_rwlock_unlock(lock.lock) == 0)
            limit = timespec(tv_sec: time(nil) + 1000, tv_nsec: 0)
            #expect(pthread_mutex_timedlock(lock.mutex, &limit) == 0)
            #expect(simulation.now == RunLoop.Instant(nanoseconds: 100_000_000_000))
            pthread_mutex_unlock(lock.mutex)
            holder.join()
        }
    }

    /// Lazy values, whose initialization takes virtual time.
    private enum Lazy {
        static let swift = { sleep(10) }()
        nonisolated(unsafe) static var once = pthread_once_t()
    }

    @Test("a value that another thread initializes is waited for in virtual time")
    func initializations() {
        withSimulation { simulation in
            simulation.captureExecutors()
            let log = Log<String>()
            let threads = (1...2).map { number in
                LoopThread(name: "\(number)") { _ in
                    _ = Lazy.swift
                    log("\(number) at \(simulation.now)")
                    pthread_once(&Lazy.once) { sleep(10) }
                    log("\(number) at \(simulation.now)")
                }
            }
            for thread in threads { thread.join() }
            #expect(
                log.entries == [
                    "1 at 10.000000000", "2 at 10.000000000", "1 at 20.000000000", "2 at 20.000000000",
                ])
        }
    }

    @Test("a wait for a group of Dispatch ends when another thread leaves it, or at its limit")
    func groups() {
        withSimulation { simulation in
            simulation.captureExecutors()
            let group = DispatchGroup()
            group.enter()
            let worker = LoopThread(name: "worker") { _ in
                sleep(10)
                group.leave()
            }
            #expect(group.wait(timeout: .now() + 4) == .timedOut)
            #expect(simulation.now == RunLoop.Instant(nanoseconds: 4_000_000_000))
            #expect(group.wait(timeout: .now() + 4000) == .success)
            #expect(simulation.now == RunLoop.Instant(nanoseconds: 10_000_000_000))
            worker.join()
        }
    }

    @Test("a thread of the simulation is joined in virtual time")
    func joins() {
        withSimulation { simulation in
            simulation.captureExecutors()
            let handle = Log<pthread_t>()
            let worker = LoopThread(name: "worker") { _ in
                handle.append(pthread_self())
                sleep(10)
            }
            simulation.yield()
            #expect(pthread_join(handle.entries[0], nil) == 0)
            #expect(simulation.now == RunLoop.Instant(nanoseconds: 10_000_000_000))
            _ = Unmanaged.passRetained(worker)
        }
    }

    @Test(
        "each thread has a number of its own, which the C library and the kernel's calls tell, and the main thread is one"
    )
    func numbers() throws {
        typealias Get = @convention(c) () -> Int32
        typealias Call = @convention(c) (Int) -> Int
        let get = unsafeBitCast(try #require(dlsym(nil, "gettid")), to: Get.self)
        let call = unsafeBitCast(try #require(dlsym(nil, "syscall")), to: Call.self)
        withSimulation { simulation in
            simulation.captureExecutors()
            let log = Log<Int>()
            let threads = (1...2).map { number in
                LoopThread(name: "\(number)") { _ in
                    for _ in 1...2 {
                        log.append(Int(get()))
                        usleep(1000)
                        log.append(call(186))
                    }
                    if Foundation.Thread.isMainThread { log.append(0) }
                }
            }
            for thread in threads { thread.join() }
            #expect(log.entries.count == 8 && Set(log.entries + [Int(get())]).count == 3)
        }
    }

    @Test("threads outside and inside contend for a Mutex")
    func contention() {
        let guarded = Guarded()
        let isOver = Flag()
        let outside = (0..<2).map { _ in
            PlainThread {
                while !isOver.isSet { guarded.mutex.withLock { $0 += 1 } }
            }
        }
        let count = Log<Int>()
        withSimulation { simulation in
            simulation.captureExecutors()
            let threads = (1...4).map { number in
                LoopThread(name: "\(number)") { _ in
                    for step in 1...2000 {
                        guarded.mutex.withLock { value in
                            let before = value
                            if step % 100 == 0 { usleep(UInt32(number)) }
                            value = before + 1
                        }
                    }
                    count.append(2000)
                }
            }
            for thread in threads { thread.join() }
        }
        isOver.set()
        for thread in outside { thread.join() }
        #expect(count.entries.count == 4)
        #expect(guarded.mutex.withLock { $0 } >= 8000)
    }

    @Test("a deadlock of locks is reported with its threads, its locks and its functions")
    func deadlock() {
        withSimulation { simulation in
            simulation.captureExecutors()
            let (left, right) = (NSLock(), Guarded())
            for (name, isLeftFirst) in [("left", true), ("right", false)] {
                _ = LoopThread(name: name) { _ in
                    if isLeftFirst {
                        left.withLock {
                            sleep(1)
                            right.mutex.withLock { _ in }
                        }
                    } else {
                        right.mutex.withLock { _ in
                            sleep(1)
                            left.withLock {}
                        }
                    }
                }
            }
            guard case .stuck(let waits) = simulation.runUntilIdle(), waits.count == 2 else {
                Issue.record("\(simulation.standing)")
                return
            }
            #expect(
                "\(waits[0])".hasPrefix("left has waited since 1.000000000 for a lock of \"right\", in "), "\(waits)")
            #expect(
                "\(waits[1])".hasPrefix("right has waited since 1.000000000 for a lock of \"left\", in "), "\(waits)")
            #expect("\(waits[0])".contains("LockTests.deadlock()"), "\(waits)")
        }
    }

    @Test("an exploration finds a deadlock of locks")
    func explored() {
        let result = Exploration(schedules: 200, seed: 1).run { simulation in
            simulation.captureExecutors(width: 2)
            let (left, right) = (Guarded(), Guarded())
            Task {
                left.mutex.withLock { _ in
                    usleep(1)
                    right.mutex.withLock { _ in }
                }
            }
            Task {
                right.mutex.withLock { _ in
                    usleep(1)
                    left.mutex.withLock { _ in }
                }
            }
            simulation.runUntilIdle()
        }
        guard case .failed(let finding) = result else {
            Issue.record("not found")
            return
        }
        #expect(finding.fault.kind == .deadlock)
        #expect(finding.fault.description.contains("for a lock of \"default executor"), "\(finding)")
    }

    @Test("the test's own thread in a deadlock of locks ends the process at once, with the names")
    func mainDeadlock() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            Self.lockBothInBothOrders()
        }
        let words = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        #expect(words.contains("\"main\" waits for a lock of \"other\""), "\(words)")
        #expect(words.contains("\"other\" waits for a lock of \"main\""), "\(words)")
    }

    private static func lockBothInBothOrders() {
        withSimulation { simulation in
            simulation.captureExecutors()
            let (left, right) = (NSLock(), NSLock())
            left.lock()
            let clock = LoopThread(name: "clock") { loop in
                loop.add(Timer(timeInterval: .seconds(1), repeats: true) { _ in }, forMode: .default)
            }
            let other = LoopThread(name: "other") { _ in
                right.lock()
                sleep(1)
                left.lock()
            }
            usleep(1000)
            right.lock()
            withExtendedLifetime((clock, other)) {}
        }
    }

    @Test("a report says that a lock of a killed process is never given back")
    func killed() {
        withSimulation { simulation in
            simulation.captureExecutors()
            let network = SimulatedNetwork(simulation)
            let lock = NSLock()
            let host = network.addHost("victim") { _ in
                lock.lock()
                sleep(100)
                lock.unlock()
            }
            simulation.advance(by: .seconds(1))
            host.crash()
            _ = LoopThread(name: "heir") { _ in lock.lock() }
            guard case .stuck(let waits) = simulation.runUntilIdle(), waits.count == 1 else {
                Issue.record("\(simulation.standing)")
                return
            }
            #expect("\(waits[0])".contains("for a lock of \"victim\", which was ended where it was"), "\(waits)")
        }
    }
}
