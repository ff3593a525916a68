import Glibc
import RunLoopKit
import RunLoopUnix
import TestSupport
import Testing

@Suite("Signals of tasks", .timeLimit(.minutes(5)))
struct SignalTaskTests {
    /// Sends real-time signals, which are queued, so that each one sent is delivered.
    private func send(_ signal: Signal, times: Int = 1) {
        for _ in 0..<times { #expect(kill(getpid(), signal.rawValue) == 0) }
    }

    @Test("an element says how many deliveries have come since the last one, also of those that came before the wait")
    func counted() async {
        await onLoop { loop in
            let signal = Signal.realTime(20)
            let deliveries = try loop.deliveries(of: signal)
            send(signal, times: 3)
            var total = 0
            for try await count in deliveries {
                total += count
                if total == 3 { break }
            }
            let (counts, count) = AsyncStream.makeStream(of: Int.self)
            let task = loop.task { for try await number in deliveries { count.yield(number) } }
            await Task.yield()
            send(signal)
            for await number in counts {
                #expect(number == 1)
                break
            }
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
        }
    }

    @Test("no delivery is lost, wherever waits are cancelled")
    func cancelled() async {
        let seed = UInt64.random(in: 0 ... .max)
        await onLoop { loop in
            let signal = Signal.realTime(21)
            var random = SeededGenerator(seed: seed)
            let deliveries = try loop.deliveries(of: signal)
            var (sent, received) = (0, 0)
            while sent < 300 || received < sent {
                let task = loop.task {
                    for try await count in deliveries { return count }
                    return 0
                }
                for _ in 0..<Int.random(in: 0...3, using: &random) { await Task.yield() }
                if sent < 300 {
                    send(signal)
                    sent += 1
                    task.cancel()
                }
                do { received += try await task.value } catch { #expect(error is CancellationError, "seed \(seed)") }
            }
            #expect(received == sent, "seed \(seed)")
        }
    }

    @Test("a second task is refused, and releasing the sequence restores the former disposition")
    func second() async {
        let signal = Signal.realTime(22)
        _ = Glibc.signal(signal.rawValue, SIG_IGN)
        await onLoop { loop in
            var deliveries: SignalDeliveries? = try loop.deliveries(of: signal)
            let task = loop.task { [deliveries] in for try await _ in deliveries! {} }
            await Task.yield()
            await #expect(throws: RunLoop.WaitError.alreadyWaiting("deliveries of \(signal)")) {
                for try await _ in deliveries! {}
            }
            weak let seen = deliveries
            deliveries = nil
            #expect(seen != nil)
            task.cancel()
            _ = await task.result
            // The task's own context is released after its result has arrived.
            while seen != nil { await Task.yield() }
        }
        var action = sigaction()
        #expect(sigaction(signal.rawValue, nil, &action) == 0)
        #expect(unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) == 1)
    }

    @Test("the end of the loop ends the wait, and a signal that cannot be handled is refused")
    func ends() async {
        let results = await endsOfLoop { loop in
            for try await _ in try loop.deliveries(of: .realTime(23)) {}
        }
        for result in results {
            #expect(throws: RunLoop.WaitError.loopEnded(loop: "short")) { try result.get() }
        }
        await onLoop { loop in
            #expect(throws: SignalError.self) { try loop.deliveries(of: .kill) }
        }
    }
}
