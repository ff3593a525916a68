#if Adapters
public import NIOCore
internal import RunLoopUnix

/// Reads and writes descriptors such as the ends of pipes, or terminals, with the handlers of SwiftNIO, on run loops.
///
/// ```swift
/// let channel = try await RunLoopPipeBootstrap(group: loop.nio)
///     .channelInitializer { $0.pipeline.addHandler(LineReader()) }
///     .takingOwnershipOfDescriptors(input: STDIN_FILENO, output: STDOUT_FILENO)
///     .get()
/// ```
///
/// The channel makes the descriptors non-blocking, owns them, and closes them also if it cannot be made. A descriptor that
/// the system cannot wait for, such as that of a file, fails with a `DescriptorError`.
///
/// The counterpart of SwiftNIO's `NIOPipeBootstrap`, which demands event loops of its own. Not `Sendable`; used by one
/// thread at a time.
public final class RunLoopPipeBootstrap {
    private let group: any EventLoopGroup
    private var options = ChannelOptions.Storage()
    private var initializer: (@Sendable (any Channel) -> EventLoopFuture<Void>)?

    /// - Parameter group: the event loop of the channel, or a group of which one is.
    /// - Precondition: the event loops are ``RunLoopEventLoop``s.
    public init(group: any EventLoopGroup) {
        self.group = group
    }

    /// Prepares the channel before it is active.
    public func channelInitializer(_ initializer: @escaping @Sendable (any Channel) -> EventLoopFuture<Void>) -> Self {
        self.initializer = initializer
        return self
    }

    /// Sets an option of the channel.
    public func channelOption<Option: ChannelOption>(_ option: Option, value: Option.Value) -> Self {
        options.append(key: option, value: value)
        return self
    }

    /// A channel that is read from one descriptor and written to another.
    public func takingOwnershipOfDescriptors(input: Int32, output: Int32) -> EventLoopFuture<any Channel> {
        open(input: input, output: output)
    }

    /// A channel that is read from and written to one descriptor, such as a terminal.
    public func takingOwnershipOfDescriptor(inputOutput descriptor: Int32) -> EventLoopFuture<any Channel> {
        open(input: descriptor, output: descriptor)
    }

    /// A channel that is only read. Its output is closed.
    public func takingOwnershipOfDescriptor(input: Int32) -> EventLoopFuture<any Channel> {
        open(input: input, output: nil)
    }

    /// A channel that is only written. Its input is closed; that the reader has gone is noticed by the next write.
    public func takingOwnershipOfDescriptor(output: Int32) -> EventLoopFuture<any Channel> {
        open(input: nil, output: output)
    }

    private func open(input: Int32?, output: Int32?) -> EventLoopFuture<any Channel> {
        let eventLoop = RunLoopEventLoop.of(group)
        let (options, initializer) = (options, initializer)
        return eventLoop.flatSubmit {
            guard let loop = eventLoop.loop else { return eventLoop.makeFailedFuture(EventLoopError.shutdown) }
            let stream = DescriptorStream(input: input ?? -1, output: output ?? -1, on: loop)
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
