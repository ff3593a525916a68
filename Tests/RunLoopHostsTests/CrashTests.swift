import Glibc
@_spi(Ports) import RunLoopCore
import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopUnix
import TestSupport
import Testing

/// A thread-specific value of the program, whose destructor counts.
private let destroyed = Counter()
private let key: pthread_key_t = {
    var key = pthread_key_t()
    pthread_key_create(&key) { _ in destroyed.add() }
    return key
}()

/// Returns the number of this process's threads with a name.
private func threadCount(named name: String) -> Int {
    directoryEntries("/proc/self/task").count { contents(of: "/proc/self/task/\($0)/comm") == name + "\n" }
}

/// Threads of processes that end by a crash or a signal.
@Suite("Threads of processes that are killed")
struct CrashTests {
    @Test(
        "threads of a killed process run nothing more: no handler, no defer, no deinit, no destructor of a thread's value"
    )
    func threadsEnd() {
        let ran = Counter()
        withSimulation { simulation in
            let host = SimulatedNetwork(simulation).addHost("doomed") { loop in
                let token = Token { ran.add() }
                pthread_setspecific(key, UnsafeRawPointer(bitPattern: 1))
                let threads = (0..<2).map { _ in
                    LoopThread(name: "doomed worker") { loop in
                        loop.add(
                            Timer(timeInterval: .seconds(3600), repeats: true) { _ in token.touch() }, forMode: .default
                        )
                        pthread_setspecific(key, UnsafeRawPointer(bitPattern: 1))
                    }
                }
                loop.perform(afterDelay: .seconds(10)) { [token] in
                    defer { ran.add() }
                    // Nested, so that frames of the program are on the stack.
                    loop.add(CustomSource { _ in token.touch() }, forMode: .tracking)
                    loop.run(in: .tracking)
                    withExtendedLifetime(threads) {}
                }
                // No thread waits for the end of this one.
                _ = LoopThread(name: "doomed worker") { $0.add(CustomSource(), forMode: .default) }
                loop.task {
                    defer { ran.add() }
                    try? await loop.clock.sleep(for: .seconds(1000))
                    token.touch()
                }
            }
            for life in 0..<200 {
                simulation.advance(by: .seconds(life % 2 == 0 ? 5 : 15))
                // The system's list lacks some while threads of other tests end.
                #expect(eventually("there are the threads") { threadCount(named: "doomed worker") == 3 })
                if life % 3 == 0 { host.send(.kill) } else { host.crash() }
                // The system knows a thread for a moment after its end.
                #expect(eventually("the threads have ended") { threadCount(named: "doomed worker") == 0 })
                host.start()
            }
            host.crash()
        }
        #expect(ran.value == 0 && destroyed.value == 0)
    }

    @Test("a thread that was made and has not begun ends too")
    func notBegun() {
        withSimulation { simulation in
            let hosts = Locked<[SimulatedHost]>([])
            let host = SimulatedNetwork(simulation).addHost("doomed") { loop in
                _ = LoopThread(name: "unborn") { _ in fatalError("a thread of a crashed host runs") }
                hosts.withLock { $0[0] }.crash()
            }
            hosts.withLock { $0 = [host] }
            simulation.advance(by: .seconds(1))
            #expect(!host.isRunning)
            #expect(eventually("the thread has ended") { threadCount(named: "unborn") == 0 })
        }
    }

    @Test("a crash is there for those who wait for a thread of the host")
    func joined() {
        withSimulation { simulation in
            let threads = Locked<[LoopThread]>([])
            let host = SimulatedNetwork(simulation).addHost("doomed") { loop in
                threads.withLock { $0 = [LoopThread(name: "awaited") { $0.add(CustomSource(), forMode: .default) }] }
                loop.add(CustomSource(), forMode: .default)
            }
            simulation.loop.perform(afterDelay: .seconds(2)) { host.crash() }
            simulation.advance(by: .seconds(1))
            let waiter = LoopThread(name: "waiter") { _ in threads.withLock { $0[0] }.join() }
            simulation.advance(by: .seconds(2))
            waiter.join()
            threads.withLock { $0[0] }.join()
            #expect(simulation.now == RunLoop.Instant(nanoseconds: 3_000_000_000))
        }
    }
}
