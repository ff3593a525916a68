#if Adapters
internal import NIOCore
@_spi(Ports) public import RunLoopKit

extension RunLoop {
    /// The run loop as a SwiftNIO event loop in the common modes, always the same object. Use it on the loop's thread.
    public var nio: RunLoopEventLoop { nio(inModes: .common) }

    /// Returns the run loop as a SwiftNIO event loop in the given modes, always the same object for the same modes.
    /// Call it on the loop's thread.
    ///
    /// - Parameter modes: the modes in which tasks, timers and channels of the event loop are served.
    public func nio(inModes modes: Modes) -> RunLoopEventLoop {
        precondition(!modes.isEmpty, "an event loop needs a mode; without any, its tasks would never run")
        return self[EventLoops.local].eventLoop(of: self, inModes: modes)
    }
}

/// The event loops of a run loop.
private final class EventLoops {
    static let local = RunLoop.Local { _ in EventLoops() }

    private var eventLoops: [RunLoop.Modes: RunLoopEventLoop] = [:]

    func eventLoop(of loop: RunLoop, inModes modes: RunLoop.Modes) -> RunLoopEventLoop {
        if let eventLoop = eventLoops[modes] { return eventLoop }
        let eventLoop = RunLoopEventLoop(loop, modes: modes)
        eventLoops[modes] = eventLoop
        return eventLoop
    }

    deinit {
        for eventLoop in eventLoops.values { eventLoop.end() }
    }
}
#else
@_spi(Ports) public import RunLoopKit

extension RunLoop {
    @available(*, unavailable, message: "RunLoopNIO needs the trait Adapters: .package(…, traits: [\"Adapters\"])")
    public var nio: Never { fatalError() }
}
#endif
