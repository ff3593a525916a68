#if Adapters
internal import Glibc
internal import NIOCore
@_spi(Ports) internal import RunLoopKit
@_spi(Ports) internal import RunLoopUnix

/// The channel of a listener, whose input consists of the channels of its connections.
// Unchecked like its superclass.
final class ListeningChannel: LoopChannel, @unchecked Sendable {
    private let children: any EventLoopGroup
    private let layer: StreamChannel.Layer?
    private let served: ServedChannels
    private var listener: Listener?
    private var options = Listener.Options()

    /// - Parameters:
    ///   - children: the event loops of the connections, in turn.
    ///   - layer: wraps each connection's stream in another, such as TLS.
    ///   - served: keeps the channels of the connections.
    init(
        on eventLoop: RunLoopEventLoop, children: any EventLoopGroup, under layer: StreamChannel.Layer?,
        served: ServedChannels
    ) {
        (self.children, self.layer, self.served) = (children, layer, served)
        // Limits the connections that still reach a handler after it stops reading.
        options.budget = 4
        super.init(on: eventLoop)
    }

    // MARK: Beginning

    override func bind0(to address: SocketAddress, promise: EventLoopPromise<Void>?) {
        listen(promise) { loop in
            try Listener(
                address: try Endpoint(address), on: loop, inModes: loopOfChannel.modes, options: options,
                handler: { [unowned self] _, descriptor, peer in accepted(descriptor, from: peer) })
        }
    }

    /// Accepts on a descriptor that is already listening.
    func adopt(_ descriptor: Int32, promise: EventLoopPromise<Void>?) {
        listen(promise) { loop in
            try Listener(
                inherited: descriptor, on: loop, inModes: loopOfChannel.modes, options: options,
                handler: { [unowned self] _, descriptor, peer in accepted(descriptor, from: peer) })
        }
    }

    private func listen(_ promise: EventLoopPromise<Void>?, _ make: (RunLoop) throws -> Listener) {
        guard isOpen else { return fail(promise, ChannelError.ioOnClosedChannel) }
        guard state == .registered, let loop = loopOfChannel.loop else {
            return fail(promise, ChannelError.inappropriateOperationForState)
        }
        // This option takes effect only before the socket is bound.
        options.reusesPort = isSet(SO_REUSEPORT)
        do {
            let listener = try make(loop)
            self.listener = listener
            listener.takesConnections = false
            for option in socketOptions { try system?.set(option, of: listener.fileDescriptor) }
            listener.errorHandler = { [unowned self] _, error in
                pipeline.syncOperations.fireErrorCaught(error.ioError)
            }
            listener.batchHandler = { [unowned self] in batchEnds() }
            listener.closedByLoop = { [unowned self] in lostItsLoop() }
            shared.withLock { $0.local = SocketAddress(listener.address) }
        } catch {
            listener.take()?.close()
            return fail(promise, error.forHandlers)
        }
        beginActivation(promise)
        guard isOpen else { return }
        finishActivation()
        readIfNeeded()
    }

    // MARK: Accepting

    private func accepted(_ descriptor: Int32, from peer: Endpoint) {
        readPending = false
        guard let child = children.next() as? RunLoopEventLoop, let loop = loopOfChannel.loop else {
            preconditionFailure("the event loops of a RunLoopServerBootstrap are those of run loops")
        }
        let stream = loop.makeStream(reading: descriptor, writing: descriptor)
        let channel = StreamChannel(stream, peer: peer, under: layer, on: child, parent: self)
        pipeline.syncOperations.fireChannelRead(NIOAny(channel as any Channel))
    }

    private func batchEnds() {
        guard isOpen else { return }
        pipeline.syncOperations.fireChannelReadComplete()
        readIfNeeded()
        listener?.takesConnections = readPending
    }

    override func read0() {
        guard isOpen else { return }
        readPending = true
        listener?.takesConnections = true
    }

    override func pauseReading() {
        super.pauseReading()
        listener?.takesConnections = false
    }

    /// Begins a connection that has passed through the handlers of the pipeline.
    override func channelRead0(_ data: NIOAny) {
        if let channel = tryUnwrapData(data, as: (any Channel).self) { Self.begin(channel, served) }
    }

    /// Makes a connection's channel active.
    static func begin(_ channel: any Channel, _ served: ServedChannels) {
        guard let channel = channel as? StreamChannel else { return }
        channel.loopOfChannel.onLoop { channel.registerAlreadyConfigured0(promise: nil) }
        // At once, so that a server that has closed its listener and quiesces waits for it; and behind that block, so that
        // the channel's handlers hear of the end after the beginning.
        served.add(channel)
    }

    // MARK: Closing

    /// Closes the channel. Closing only the input first accepts the waiting connections, whose peers may have sent a
    /// request; the channel stays open for them until the `AcceptingHandler` closes it.
    override func close0(error: any Error, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        guard mode == .input, isOpen, let listener = listener.take() else {
            return super.close0(error: error, mode: mode, promise: promise)
        }
        listener.closedByLoop = nil
        listener.takesConnections = true
        listener.finish()
        promise?.succeed(())
    }

    override func release(_ error: any Error) {
        let listener = listener.take()
        listener?.closedByLoop = nil
        listener?.close()
    }

    // MARK: Options

    override var socket: Int32? { listener?.fileDescriptor }

    override func set(_ option: Any, to value: Any) -> Bool {
        switch (option, value) {
        case (_ as ChannelOptions.Types.BacklogOption, let value as Int32): options.backlog = value
        case (_ as ChannelOptions.Types.MaxMessagesPerReadOption, let value as UInt):
            options.budget = Int(clamping: max(1, value))
        default: return false
        }
        return true
    }

    override func value(of option: Any) -> Any? {
        switch option {
        case _ as ChannelOptions.Types.BacklogOption: options.backlog
        case _ as ChannelOptions.Types.MaxMessagesPerReadOption: UInt(options.budget)
        default: nil
        }
    }
}
#endif
