import Foundation
import Logging
import NIOCore
import RunLoopHosts
import RunLoopKit
import RunLoopNIO
import RunLoopSimulation
import RunLoopUnix
import ServiceLifecycle
import Synchronization

/// Programs on simulated hosts whose logic is another library's. Each returns `true` if it passed.
enum Programs {
    private typealias Time = RunLoopKit.RunLoop.Instant

    static func all(seed: UInt64) -> Bool {
        // All programs run, even after a failure.
        [idleConnections(seed: seed), shutdown(seed: seed), retries(seed: seed)].allSatisfy(\.self)
    }

    // MARK: SwiftNIO

    /// Closes its channel when nothing was read for the time that the handler before it allows.
    private final class Closer: ChannelInboundHandler, Sendable {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        private let note: @Sendable (String) -> Void

        init(_ note: @escaping @Sendable (String) -> Void) {
            self.note = note
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            context.writeAndFlush(wrapOutboundOut(unwrapInboundIn(data)), promise: nil)
        }

        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
            guard case .read? = event as? IdleStateHandler.IdleStateEvent else { return }
            note("idle at \(NIODeadline.now().uptimeNanoseconds)")
            context.close(promise: nil)
        }
    }

    /// A client sends for a day, at random times, and then falls silent; SwiftNIO's handler on the server's side closes the
    /// connection six minutes after the last byte.
    private static func idleConnections(seed: UInt64) -> Bool {
        simulate("idle handler", seed: seed) { simulation, network in
            let last = Mutex<ContinuousClock.Instant?>(nil), silence = Mutex<Duration?>(nil)
            network.addHost("server") { loop in
                RunLoopServerBootstrap(group: loop.nio)
                    .childChannelInitializer { channel in
                        channel.eventLoop.makeCompletedFuture {
                            try channel.pipeline.syncOperations.addHandlers(
                                IdleStateHandler(readTimeout: .minutes(6)), Closer { simulation.note($0) })
                        }
                    }
                    .bind(host: "0.0.0.0", port: 7)
                    .whenFailure { simulation.note("\($0)") }
            }
            network.addHost("client") { loop in
                loop.task {
                    let connection = try await Connection.connect(host: "server", port: 7, on: loop)
                    try await connection.withStream { stream in
                        let clock = ContinuousClock()
                        let end = clock.now + .seconds(86_400)
                        while clock.now < end {
                            try await stream.write(Array(UUID().uuidString.utf8))
                            last.withLock { $0 = clock.now }
                            _ = try await stream.read()
                            try await Task.sleep(for: .seconds(.random(in: 1..<300)))
                        }
                        while try await stream.read() != nil {}
                        silence.withLock { silence in silence = last.withLock(\.self).map { clock.now - $0 } }
                    }
                }
            }
            simulation.advance(by: .seconds(90_000))
            guard let silence = silence.withLock(\.self) else { return "was not closed" }
            return silence >= .seconds(360) && silence < .milliseconds(360_100) ? "passed" : "closed after \(silence)"
        }
    }

    // MARK: swift-service-lifecycle

    /// A service that breaks its promises: it ignores the shutdown, and ends two seconds after its cancellation.
    private struct Stubborn: Service {
        func run() async throws {
            try? await Task.sleep(for: .seconds(86_400))
            await Task { try? await Task.sleep(for: .seconds(2)) }.value
        }
    }

    /// A group is asked to stop after an hour, and cancels its service when the time for that is over.
    private static func shutdown(seed: UInt64) -> Bool {
        simulate("shutdown", seed: seed) { simulation, network in
            let taken = Mutex<Duration?>(nil)
            network.addHost("daemon") { loop in
                loop.task {
                    var configuration = ServiceGroupConfiguration(
                        services: [Stubborn()], logger: Logger(label: "daemon"))
                    configuration.maximumGracefulShutdownDuration = .seconds(30)
                    configuration.maximumCancellationDuration = .seconds(10)
                    let group = ServiceGroup(configuration: configuration)
                    Task {
                        try await Task.sleep(for: .seconds(3_600))
                        await group.triggerGracefulShutdown()
                    }
                    let time = await ContinuousClock().measure { try? await group.run() }
                    taken.withLock { $0 = time }
                }
            }
            simulation.advance(by: .seconds(4_000))
            guard let taken = taken.withLock(\.self) else { return "did not end" }
            return taken == .seconds(3_632) ? "passed" : "took \(taken)"
        }
    }

    // MARK: A retry

    private struct Unavailable: Error {}

    /// A library's retry, with exponential backoff and jitter.
    private static func withRetry<Value: Sendable>(
        _ operation: @Sendable () async throws -> Value
    ) async throws -> Value {
        var pause = Duration.milliseconds(100)
        while true {
            do { return try await operation() } catch is Unavailable {}
            try await Task.sleep(for: pause * Double.random(in: 0.5..<1.5))
            pause = min(pause * 2, .seconds(60))
        }
    }

    /// For a day, ten clients call a service that is unavailable every other hour.
    private static func retries(seed: UInt64) -> Bool {
        simulate("retry", seed: seed) { simulation, network in
            let calls = Mutex((answered: 0, failed: 0))
            let begin = Date()
            network.addHost("clients") { loop in
                for number in 1...10 {
                    loop.task(name: "client \(number)") {
                        while Date() < begin + 86_400 {
                            let request = try await withRetry {
                                if Int(Date().timeIntervalSince(begin)) / 3_600 % 2 == 1 {
                                    calls.withLock { $0.failed += 1 }
                                    throw Unavailable()
                                }
                                return UUID()
                            }
                            calls.withLock { $0.answered += 1 }
                            simulation.note("\(number) \(request)")
                            try await Task.sleep(for: .seconds(.random(in: 10..<100)))
                        }
                    }
                }
            }
            simulation.advance(by: .seconds(90_000))
            let (answered, failed) = calls.withLock(\.self)
            // An hour of backoff has about seventy calls: nine in the first minute, then one each.
            return answered > 5_000 && (5_000..<12_000).contains(failed)
                ? "passed" : "\(answered) answered, \(failed) failed"
        }
    }
}
