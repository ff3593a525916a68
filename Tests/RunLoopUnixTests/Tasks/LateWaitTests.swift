import Glibc
import RunLoopKit
import RunLoopUnix
import TestSupport
import Testing

@Suite("Waits of a task that has outlived its loop", .timeLimit(.minutes(1)))
struct LateWaitTests {
    private static let waits: [@Sendable (RunLoop) throws -> () async throws -> Void] = [
        { loop in { _ = try await Connection.connect(to: Endpoint("127.0.0.1", port: 9), on: loop) } },
        { loop in { _ = try await HostResolver.resolve("localhost", port: 9, on: loop) } },
        { loop in
            let limiter = RateLimiter(RateLimit(interval: .seconds(1), burst: 1), on: loop)
            return { try await limiter.acquire() }
        },
        { loop in
            let listener = try Listener(address: Endpoint("127.0.0.1", port: 0), on: loop)
            return { _ = try await listener.accept() }
        },
        { loop in
            let socket = try DatagramSocket(address: Endpoint("127.0.0.1", port: 0), on: loop)
            return { _ = try await socket.receive() }
        },
        { loop in
            let pair = DescriptorPair(.socketPair)
            let connection = Connection(adopting: dup(pair.reader), on: loop)
            return { _ = try await connection.read() }
        },
        { loop in
            let daemon = Daemon(loop: loop, manager: try ServiceManager(environment: [:]))
            return { _ = try await daemon.run() }
        },
        { loop in { try await loop.clock.sleep(for: .seconds(1)) } },
    ]

    @Test("waits end with an error that names the loop", arguments: waits.indices)
    func outlives(index: Int) async throws {
        let (mayGoOn, log) = (Flag(), Log<String>())
        let thread = LoopThread(name: "short") { loop in
            loop.task {
                let wait = try Self.waits[index](loop)
                await Task.detached { try? await comesTrue { mayGoOn.isSet } }.value
                do { try await wait() } catch { log("\(error)") }
            }
            loop.perform(afterDelay: .milliseconds(1)) { RunLoop.current.stop() }
        }
        await thread.ended()
        mayGoOn.set()
        try await comesTrue { log.entries == ["\(RunLoop.WaitError.loopEnded(loop: "short"))"] }
    }
}
