#if Adapters
public import NIOCore
@_spi(Ports) internal import RunLoopUnix

/// A bootstrap for channels on descriptors, such as pipes or terminals, that use SwiftNIO's handlers on run loops.
///
/// ```swift
/// let channel = try await RunLoopPipeBootstrap(group: loop.nio)
///     .channelInitializer { $0.pipeline.addHandler(LineReader()) }
///     .takingOwnershipOfDescriptors(input: STDIN_FILENO, output: STDOUT_FILENO)
///     .get()
/// ```
///
/// The channel makes the descriptors non-blocking and owns them; if it cannot be made, they are closed. A descriptor
/// that the system cannot wait for, such as a file's, fails with a `DescriptorError`.
///
/// Replaces SwiftNIO's `NIOPipeBootstrap`, which accepts only SwiftNIO's event loops. Not `Sendable`; only one thread
/// at a time may use it.
public final class RunLoopPipeBootstrap {
    private let group: any EventLoopGroup
    private var options = ChannelOptions.Storage()
    private var initializer: (@Sendable (any Channel) -> EventLoopFuture<Void>)?

    /// - Parameter group: the channel's event loop, or a group that contains it.
    /// - Precondition: the event loops are ``RunLoopEventLoop``s.
    public init(group: any EventLoopGroup) {
        self.group = group
    }

    /// Sets the closure that prepares the channel before it is active.
    public func channelInitializer(_ initializer: @escaping @Sendable (any Channel) -> EventLoopFuture<Void>) -> Self {
        self.initializer = initializer
        return self
    }

    /// Sets an option of the channel.
    public func channelOption<Option: ChannelOption>(_ option: Option, value: Option.Value) -> Self {
        options.append(key: option, value: value)
        return self
    }

    /// Opens a channel that reads from one descriptor and writes to another.
    public func takingOwnershipOfDescriptors(input: Int32, output: Int32) -> EventLoopFuture<any Channel> {
        open(input: input, output: output)
    }

    /// Opens a channel that reads from and writes to one descriptor, such as a terminal.
    public func takingOwnershipOfDescriptor(inputOutput descriptor: Int32) -> EventLoopFuture<any Channel> {
        open(input: descriptor, output: descriptor)
    }

    /// Opens a channel that only reads; its output is closed.
    public func takingOwnershipOfDescriptor(input: Int32) -> EventLoopFuture<any Channel> {
        open(input: input, output: nil)
    }

    /// Opens a channel that only writes; its input is closed. If the reader has closed its end, the next write fails.
    public func takingOwnershipOfDescriptor(output: Int32) -> EventLoopFuture<any Channel> {
        open(input: nil, output: output)
    }

    private func open(input: Int32?, output: Int32?) -> EventLoopFuture<any Channel> {
        let eventLoop = RunLoopEventLoop.of(group)
        let (options, initializer) = (options, initializer)
        return eventLoop.flatSubmit {
            guard let loop = eventLoop.loop else { return eventLoop.makeFailedFuture(EventLoopError.shutdown) }
            let stream = loop.makeStream(reading: input ?? -1, writing: output ?? -1)
            let channel = StreamChannel(stream, isRead: input != nil, isWritten: output != nil, on: eventLoop)
            return channel.prepare(options, initializer) {
                eventLoop.promising { channel.registerAlreadyConfigured0(promise: $0) }
            }
        }
    }
}

@available(*, unavailable, message: "one thread at a time uses a bootstrap")
extension RunLoopPipeBootstrap: Sendable {}
#endif
