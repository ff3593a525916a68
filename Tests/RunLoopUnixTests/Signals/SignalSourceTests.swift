import Glibc
import RunLoopCore
import RunLoopKit
import RunLoopSimulation
import RunLoopUnix
import TestSupport
import Testing

/// The behaviour of sources within a process. Each test changes dispositions, so it has a process of its own.
@Suite("Signal sources", .timeLimit(.minutes(15)))
struct SignalSourceTests {
    @Test("a source is live when it has been added: the signal neither ends the process nor is lost")
    func live() async {
        await #expect(processExitsWith: .success) {
            let counts = onThread {
                var counts: [Int] = []
                let loop = RunLoop.current
                let source = try! SignalSource(signal: .terminate) { counts.append($0.count) }
                try! loop.add(source, forMode: .default)
                raise(SIGTERM)
                raise(SIGTERM)
                loop.run(in: .default, until: .distantPast)
                raise(SIGTERM)
                loop.run(in: .default, until: .distantPast)
                loop.run(in: .default, until: .distantPast)
                return counts
            }
            precondition(counts == [2, 1], "\(counts)")
        }
    }

    @Test("a signal wakes a loop that sleeps")
    func wakes() async {
        await #expect(processExitsWith: .success) {
            let result = onThread {
                let loop = RunLoop.current
                let remote = loop.remote
                try! loop.add(try! SignalSource(signal: .user1) { _ in loop.stop() }, forMode: .default)
                let sender = PlainThread {
                    precondition(eventually { remote.isWaiting })
                    kill(getpid(), SIGUSR1)
                }
                defer { sender.join() }
                return loop.run(in: .default, until: loop.now + .seconds(30))
            }
            precondition(result == .stopped, "\(result)")
        }
    }

    @Test("a signal that comes out of its mode waits with its count until the mode runs")
    func modes() async {
        await #expect(processExitsWith: .success) {
            let isGood = onThread {
                var counts: [Int] = []
                let loop = RunLoop.current
                let source = try! SignalSource(signal: .user1) { counts.append($0.count) }
                try! loop.add(source, forMode: .default)
                loop.add(CustomSource(), forMode: "panel")
                for _ in 1...3 {
                    raise(SIGUSR1)
                    loop.run(in: "panel", until: .distantPast)
                }
                guard counts.isEmpty, loop.statistics.parks == 1 else { return false }
                loop.run(in: .default, until: .distantPast)
                return counts == [3]
            }
            precondition(isGood)
        }
    }

    @Test("a source in the common modes is served in a mode that becomes common later")
    func common() async {
        await #expect(processExitsWith: .success) {
            let count = onThread {
                var count = 0
                let loop = RunLoop.current
                try! loop.add(try! SignalSource(signal: .user1) { count += $0.count }, forMode: .common)
                loop.addCommonMode(.tracking)
                raise(SIGUSR1)
                loop.run(in: .tracking, until: .distantPast)
                return count
            }
            precondition(count == 1)
        }
    }

    @Test("several sources for one signal each receive every delivery, also one that is added later")
    func several() async {
        await #expect(processExitsWith: .success) {
            let counts = onThread {
                var counts = [0, 0, 0]
                let loop = RunLoop.current
                try! loop.add(try! SignalSource(signal: .user1) { counts[0] += $0.count }, forMode: .default)
                try! loop.add(try! SignalSource(signal: .user1) { counts[1] += $0.count }, forMode: .default)
                raise(SIGUSR1)
                try! loop.add(try! SignalSource(signal: .user1) { counts[2] += $0.count }, forMode: .default)
                raise(SIGUSR1)
                loop.run(in: .default, until: .distantPast)
                return counts
            }
            precondition(counts == [2, 2, 1], "\(counts)")
        }
    }

    @Test("a hundred sources, more than the first part of the table holds, receive their own signals only")
    func many() async {
        await #expect(processExitsWith: .success) {
            let counts = onThread {
                var counts: [Signal: Int] = [:]
                let loop = RunLoop.current
                for index in 0..<100 {
                    let source = try! SignalSource(signal: index % 2 == 0 ? .user1 : .user2) {
                        counts[$0.signal, default: 0] += $0.count
                    }
                    try! loop.add(source, forMode: .default)
                }
                raise(SIGUSR1)
                raise(SIGUSR2)
                raise(SIGUSR2)
                // One wait reports no more than some of these descriptors.
                for _ in 1...10 { loop.run(in: .default, until: .distantPast) }
                return counts
            }
            precondition(counts == [.user1: 50, .user2: 100], "\(counts)")
        }
    }

    @Test("a handler is not called again while it is on the stack; signals that arrive meanwhile wait")
    func nested() async {
        await #expect(processExitsWith: .success) {
            let counts = onThread {
                var counts: [Int] = []
                let loop = RunLoop.current
                let source = try! SignalSource(signal: .user1) {
                    counts.append($0.count)
                    guard counts.count == 1 else { return }
                    raise(SIGUSR1)
                    loop.run(in: .default, until: .distantPast)
                    counts.append(-1)
                }
                try! loop.add(source, forMode: .default)
                raise(SIGUSR1)
                loop.run(in: .default, until: .distantPast)
                loop.run(in: .default, until: .distantPast)
                return counts
            }
            precondition(counts == [1, -1, 1], "\(counts)")
        }
    }

    @Test("a loop in a simulation receives signals, and its time does not move for them")
    func simulation() async {
        await #expect(processExitsWith: .success) {
            let isGood = onThread {
                withSimulation { simulation in
                    let loop = simulation.loop
                    let start = loop.now
                    var counts: [Int] = []
                    let source = try! SignalSource(signal: .user1) {
                        counts.append($0.count)
                        if counts.count == 2 { precondition(loop.now == start + .seconds(3600)) }
                    }
                    try! loop.add(source, forMode: .default)
                    raise(SIGUSR1)
                    simulation.advance(by: .zero)
                    loop.perform(afterDelay: .seconds(3600)) {
                        raise(SIGUSR1)
                        raise(SIGUSR1)
                    }
                    simulation.advance(by: .seconds(7200))
                    return counts == [1, 2]
                }
            }
            precondition(isGood)
        }
    }

    @Test("a source that is invalid, or in no mode, is not scheduled")
    func ignored() async {
        await #expect(processExitsWith: .success) {
            let isGood = onThread {
                let loop = RunLoop.current
                let source = try! SignalSource(signal: .user1) { _ in }
                try! loop.add(source, forMode: [])
                guard disposition(of: .user1) == 0 else { return false }
                source.invalidate()
                source.invalidate()
                try! loop.add(source, forMode: .default)
                return disposition(of: .user1) == 0 && loop.run(in: .default, until: .distantPast) == .finished
            }
            precondition(isGood)
        }
    }
}
