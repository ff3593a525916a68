#if Adapters
// Dispatch queues are in the signature of one of SwiftNIO's requirements.
public import Dispatch
public import NIOCore
public import RunLoopKit
public import RunLoopUnix
internal import Synchronization

/// The loops of a `LoopGroup` as SwiftNIO event loops.
///
/// ```swift
/// let group = RunLoopEventLoopGroup(try LoopGroup())
/// let server = RunLoopServerBootstrap(group: group)
///     .childChannelInitializer { $0.pipeline.addHandler(Echo()) }
///     .bind(host: "0.0.0.0", port: 7)
/// ```
///
/// `Sendable`; any thread.
public final class RunLoopEventLoopGroup: EventLoopGroup {
    /// The event loops, in the order of the group's loops.
    public let eventLoops: [RunLoopEventLoop]

    private let loops: LoopGroup
    private let turn = Atomic(0)

    /// Creates the event loops of a group, each on its own thread. Blocks the calling thread meanwhile.
    ///
    /// - Parameters:
    ///   - group: the loops.
    ///   - modes: the modes of the event loops; by default the common modes.
    /// - Precondition: no loop of the group has ended.
    @available(
        *, noasync, message: "it blocks the calling thread; make the group before tasks begin, or on a LoopThread"
    )
    public init(_ group: LoopGroup, inModes modes: RunLoop.Modes = .common) {
        loops = group
        eventLoops = group.loops.map { loop in
            guard let eventLoop = try? loop.performAndWait({ $0.nio(inModes: modes) }) else {
                preconditionFailure("\(loop) has ended; make the event loops of a group before it stops")
            }
            return eventLoop
        }
    }

    /// Returns the event loops in turn.
    public func next() -> any EventLoop {
        eventLoops[turn.wrappingAdd(1, ordering: .relaxed).oldValue % eventLoops.count]
    }

    /// Returns the event loop of the calling thread, or else the next one.
    public func any() -> any EventLoop {
        eventLoops.first(where: \.inEventLoop) ?? next()
    }

    public func makeIterator() -> EventLoopIterator { EventLoopIterator(eventLoops) }

    /// Stops the loops of the group, and calls `callback` on `queue` when all have ended.
    @preconcurrency
    public func shutdownGracefully(queue: DispatchQueue, _ callback: @escaping @Sendable ((any Error)?) -> Void) {
        loops.stop()
        Task { [loops] in
            await loops.ended()
            queue.async { callback(nil) }
        }
    }

    @preconcurrency
    public func _preconditionSafeToSyncShutdown(file: StaticString, line: UInt) {
        for eventLoop in eventLoops { eventLoop.preconditionNotInEventLoop(file: file, line: line) }
    }
}
#endif
