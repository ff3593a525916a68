#if Adapters
internal import Glibc
internal import NIOCore
@_spi(Ports) internal import RunLoopCore
internal import RunLoopKit
@_spi(Ports) internal import RunLoopUnix
internal import Synchronization

/// The channel of a datagram socket, whose input consists of envelopes of bytes.
// Unchecked like its superclass.
final class DatagramChannel: LoopChannel, MulticastChannel, @unchecked Sendable {
    private typealias Envelope = AddressedEnvelope<NIOCore.ByteBuffer>

    private struct Write {
        let bytes: NIOCore.ByteBuffer
        /// The receiver; `nil` for the connected peer.
        let receiver: SocketAddress?
        /// The source address and the congestion mark.
        let metadata: Envelope.Metadata?
        let promise: EventLoopPromise<Void>?
    }

    private var datagrams: DatagramSocket?
    private var options = DatagramSocket.Options()
    private var isPaused = false
    private var reportsCongestion = false
    private var reportsPackets = false
    private var messagesPerRead = 4
    private var messagesPerCall = 16

    private let writability = Atomic(true)
    /// The writes that have not been handed to the socket.
    private var writes = MarkedCircularBuffer<Write>(initialCapacity: 4)
    private var handedOver = CircularBuffer<Write>()
    /// The number of bytes in `writes` and `handedOver`.
    private var pendingBytes = 0
    private var waterMark = ChannelOptions.Types.WriteBufferWaterMark(low: 32 * 1024, high: 64 * 1024)

    override init(on eventLoop: RunLoopEventLoop, parent: (any Channel)? = nil) {
        // As in other channels, the water marks limit the output.
        options.maximumOutput = .max
        super.init(on: eventLoop, parent: parent)
    }

    override var isWritable: Bool { writability.load(ordering: .relaxed) }

    // MARK: Beginning

    override func bind0(to address: SocketAddress, promise: EventLoopPromise<Void>?) {
        open(promise) { loop, receive in
            try DatagramSocket(
                address: Endpoint(address), on: loop, inModes: loopOfChannel.modes, options: options, receive: receive)
        }
    }

    /// Connects a bound socket, or a new one.
    override func connect0(to address: SocketAddress, promise: EventLoopPromise<Void>?) {
        guard let datagrams, isLive else {
            return open(promise) { loop, receive in
                let datagrams = try DatagramSocket(
                    peer: Endpoint(address), on: loop, inModes: loopOfChannel.modes, options: options, receive: receive)
                shared.withLock { $0.remote = address }
                return datagrams
            }
        }
        do {
            try datagrams.connect(to: Endpoint(address))
            shared.withLock { $0.remote = address }
            promise?.succeed(())
        } catch {
            fail(promise, error.ioError)
        }
    }

    /// Takes over a datagram socket.
    func adopt(_ descriptor: Int32, promise: EventLoopPromise<Void>?) {
        open(promise) { loop, receive in
            let datagrams = try DatagramSocket(
                adopting: descriptor, on: loop, inModes: loopOfChannel.modes, options: options, receive: receive)
            let peer = WorldSystem.of(loop).peerAddress(of: descriptor)
            shared.withLock { $0.remote = SocketAddress(peer) }
            return datagrams
        }
    }

    private func open(
        _ promise: EventLoopPromise<Void>?,
        _ make: (RunLoop, @escaping DatagramSocket.ReceiveHandler) throws -> DatagramSocket
    ) {
        guard isOpen else { return fail(promise, ChannelError.ioOnClosedChannel) }
        guard state == .registered, let loop = loopOfChannel.loop else {
            return fail(promise, ChannelError.inappropriateOperationForState)
        }
        // These options take effect only before the socket is bound.
        options.reusesAddress = isSet(SO_REUSEADDR)
        options.reusesPort = isSet(SO_REUSEPORT)
        options.budget = messagesPerRead * messagesPerCall
        do {
            let datagrams = try make(loop) { [unowned self] in received($1, $2) }
            self.datagrams = datagrams
            for option in socketOptions { try system?.set(option, of: datagrams.fileDescriptor) }
            datagrams.errorHandler = { [unowned self] _, error, _ in
                pipeline.syncOperations.fireErrorCaught(error.ioError)
            }
            datagrams.batchHandler = { [unowned self] in batchEnds() }
            datagrams.outcomeHandler = { [unowned self] error in
                if let write = handedOver.popFirst() { left(write, error) }
            }
            datagrams.closedByLoop = { [unowned self] in lostItsLoop() }
            shared.withLock { $0.local = SocketAddress(datagrams.address) }
        } catch {
            datagrams.take()?.close()
            return fail(promise, error.forHandlers)
        }
        pauseReading()
        beginActivation(promise)
        guard isOpen else { return }
        finishActivation()
        guard isOpen else { return }
        send()
        readIfNeeded()
    }

    // MARK: Receiving

    private func received(_ bytes: Span<UInt8>, _ header: DatagramSocket.Header) {
        readPending = false
        let buffer = bytes.withUnsafeBytes { allocator.buffer(bytes: $0) }
        let sender = SocketAddress(header.sender) ?? Self.unnamed
        let envelope = Envelope(remoteAddress: sender, data: buffer, metadata: metadata(of: header))
        pipeline.syncOperations.fireChannelRead(NIOAny(envelope))
    }

    /// Returns the metadata that the options ask for.
    private func metadata(of header: DatagramSocket.Header) -> Envelope.Metadata? {
        guard reportsCongestion || reportsPackets else { return nil }
        let asked = reportsPackets ? header.localAddress.flatMap { SocketAddress($0) } : nil
        return Envelope.Metadata(
            ecnState: reportsCongestion ? .init(typeOfService: header.typeOfService) : .transportNotCapable,
            packetInfo: asked.map { NIOPacketInfo(destinationAddress: $0, interfaceIndex: Int(header.interface)) })
    }

    private static let unnamed = SocketAddress(sockaddr_un())

    private func batchEnds() {
        guard isOpen else { return }
        pipeline.syncOperations.fireChannelReadComplete()
        readIfNeeded()
        if isOpen, !readPending { pauseReading() }
    }

    override func read0() {
        guard isOpen else { return }
        readPending = true
        if isPaused { datagrams?.resumeReceiving() }
        isPaused = false
    }

    override func pauseReading() {
        super.pauseReading()
        if !isPaused { datagrams?.pauseReceiving() }
        isPaused = true
    }

    // MARK: Sending

    override func write0(_ data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard isOpen else { return fail(promise, ChannelError.ioOnClosedChannel) }
        let write =
            if let envelope = tryUnwrapData(data, as: Envelope.self) {
                Write(
                    bytes: envelope.data, receiver: envelope.remoteAddress, metadata: envelope.metadata,
                    promise: promise)
            } else {
                Write(
                    bytes: unwrapData(data, as: NIOCore.ByteBuffer.self), receiver: nil, metadata: nil,
                    promise: promise)
            }
        writes.append(write)
        pendingBytes += write.bytes.readableBytes
        guard pendingBytes > waterMark.high, isWritable else { return }
        writability.store(false, ordering: .relaxed)
        pipeline.syncOperations.fireChannelWritabilityChanged()
    }

    override func flush0() {
        guard isOpen else { return }
        writes.mark()
        send()
    }

    /// Hands the flushed datagrams to the socket, which sends as many per system call as it can.
    private func send() {
        guard isLive, let datagrams else { return }
        datagrams.sendTogether {
            while writes.hasMark, let write = writes.popFirst() {
                let (receiver, source): (Endpoint?, Endpoint?)
                do {
                    // The socket combines datagrams of equal length by itself.
                    if write.metadata?.segmentSize != nil { throw ChannelError.operationUnsupported }
                    receiver = try write.receiver.map(Endpoint.init)
                    source = try (write.metadata?.packetInfo?.destinationAddress).map(Endpoint.init)
                } catch {
                    left(write, error)
                    continue
                }
                handedOver.append(write)
                let typeOfService = write.metadata?.ecnState.typeOfService
                write.bytes.withUnsafeReadableBytes {
                    _ = datagrams.send(
                        Span(_unsafeBytes: $0), to: receiver, from: source, typeOfService: typeOfService)
                }
            }
        }
    }

    /// Completes the write of a datagram that was sent or has failed.
    private func left(_ write: Write, _ error: (any Error)?) {
        pendingBytes -= write.bytes.readableBytes
        let becomesWritable = !isWritable && pendingBytes < waterMark.low
        if becomesWritable { writability.store(true, ordering: .relaxed) }
        if let error { write.promise?.fail(error.forHandlers) } else { write.promise?.succeed(()) }
        if becomesWritable, isOpen { pipeline.syncOperations.fireChannelWritabilityChanged() }
    }

    // MARK: Groups

    @available(*, deprecated)
    func joinGroup(_ group: SocketAddress, interface: NIONetworkInterface?, promise: EventLoopPromise<Void>?) {
        change(promise) { try $0.join(Endpoint(group), at: interface?.name) }
    }

    func joinGroup(_ group: SocketAddress, device: NIONetworkDevice?, promise: EventLoopPromise<Void>?) {
        change(promise) { try $0.join(Endpoint(group), at: device?.name) }
    }

    @available(*, deprecated)
    func leaveGroup(_ group: SocketAddress, interface: NIONetworkInterface?, promise: EventLoopPromise<Void>?) {
        change(promise) { try $0.leave(Endpoint(group), at: interface?.name) }
    }

    func leaveGroup(_ group: SocketAddress, device: NIONetworkDevice?, promise: EventLoopPromise<Void>?) {
        change(promise) { try $0.leave(Endpoint(group), at: device?.name) }
    }

    private func change(
        _ promise: EventLoopPromise<Void>?, _ membership: @escaping @Sendable (DatagramSocket) throws -> Void
    ) {
        loopOfChannel.onLoop { [self] in
            guard let datagrams else {
                return fail(
                    promise, isOpen ? ChannelError.inappropriateOperationForState : ChannelError.ioOnClosedChannel)
            }
            do {
                try membership(datagrams)
                promise?.succeed(())
            } catch {
                fail(promise, error.forHandlers)
            }
        }
    }

    // MARK: Closing

    override func release(_ error: any Error) {
        let datagrams = datagrams.take()
        datagrams?.closedByLoop = nil
        datagrams?.close()
        let unsent = handedOver.compactMap(\.promise) + writes.compactMap(\.promise)
        handedOver.removeAll()
        writes = MarkedCircularBuffer(initialCapacity: 0)
        pendingBytes = 0
        for promise in unsent { promise.fail(error) }
    }

    // MARK: Options

    override var socket: Int32? { datagrams?.fileDescriptor }

    override func set(_ option: Any, to value: Any) -> Bool {
        switch (option, value) {
        case (
            _ as ChannelOptions.Types.WriteBufferWaterMarkOption, let value as ChannelOptions.Types.WriteBufferWaterMark
        ): waterMark = value
        case (_ as ChannelOptions.Types.RecvAllocatorOption, let value as any RecvByteBufferAllocator):
            options.maximumSize = max(1, value.buffer(allocator: allocator).writableBytes)
        case (_ as ChannelOptions.Types.MaxMessagesPerReadOption, let value as UInt):
            messagesPerRead = Int(clamping: max(1, min(value, 1024)))
        case (_ as ChannelOptions.Types.DatagramVectorReadMessageCountOption, let value as Int):
            messagesPerCall = max(1, min(value, 1024))
        case (_ as ChannelOptions.Types.ExplicitCongestionNotificationsOption, let value as Bool):
            reportsCongestion = value
        case (_ as ChannelOptions.Types.ReceivePacketInfo, let value as Bool): reportsPackets = value
        default: return false
        }
        return true
    }

    override func value(of option: Any) -> Any? {
        switch option {
        case _ as ChannelOptions.Types.WriteBufferWaterMarkOption: waterMark
        case _ as ChannelOptions.Types.BufferedWritableBytesOption: pendingBytes
        case _ as ChannelOptions.Types.RecvAllocatorOption:
            FixedSizeRecvByteBufferAllocator(capacity: options.maximumSize)
        case _ as ChannelOptions.Types.MaxMessagesPerReadOption: UInt(messagesPerRead)
        case _ as ChannelOptions.Types.DatagramVectorReadMessageCountOption: messagesPerCall
        case _ as ChannelOptions.Types.ExplicitCongestionNotificationsOption: reportsCongestion
        case _ as ChannelOptions.Types.ReceivePacketInfo: reportsPackets
        default: nil
        }
    }
}

extension NIOExplicitCongestionNotificationState {
    /// The lower two bits of the type of service.
    fileprivate var typeOfService: UInt8 {
        switch self {
        case .transportNotCapable: 0
        case .transportCapableFlag1: 1
        case .transportCapableFlag0: 2
        case .congestionExperienced: 3
        }
    }

    fileprivate init(typeOfService: UInt8) {
        self =
            switch typeOfService & 3 {
            case 0: .transportNotCapable
            case 1: .transportCapableFlag1
            case 2: .transportCapableFlag0
            default: .congestionExperienced
            }
    }
}
#endif
