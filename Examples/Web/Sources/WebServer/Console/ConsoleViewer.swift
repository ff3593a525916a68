internal import Logging
internal import NIOCore
internal import NIOWebSocket
internal import RunLoopKit
internal import RunLoopUnix

/// Sends the snapshots of the daemon's console to a page, once the page has sent the key.
///
/// A page that does not read misses snapshots.
final class ConsoleViewer: ChannelInboundHandler {
    typealias InboundIn = WebSocketFrame
    typealias OutboundOut = WebSocketFrame

    private let client: Client
    private let access: ConsoleAccess
    private var context: ChannelHandlerContext?
    private var hasBegun = false
    private var console: Connection?
    private var timer: Scheduled<Void>?

    init(_ client: Client, _ access: ConsoleAccess) {
        (self.client, self.access) = (client, access)
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        let mark = ChannelOptions.Types.WriteBufferWaterMark(low: 1, high: client.limits.unreadBytes)
        try? context.channel.syncOptions?.setOption(.writeBufferWaterMark, value: mark)
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        timer = context.eventLoop.scheduleTask(in: TimeAmount(client.limits.headTime)) {
            if !bound.value.hasBegun { bound.value.close(.policyViolation) }
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        end()
        self.context = nil
    }

    func channelInactive(context: ChannelHandlerContext) {
        end()
        context.fireChannelInactive()
    }

    private func end() {
        timer?.cancel()
        console?.close()
        console = nil
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = unwrapInboundIn(data)
        switch frame.opcode {
        case .text:
            guard !hasBegun else { return }
            guard access.admits(String(buffer: frame.unmaskedData)) else {
                client.site.log.warning("\(client.peer) has no key for the console")
                return close(.policyViolation)
            }
            begin()
        case .ping: send(.pong, frame.unmaskedData)
        case .connectionClose: context.close(promise: nil)
        default: break
        }
    }

    private func begin() {
        hasBegun = true
        timer?.cancel()
        var limits = Connection.Limits()
        limits.maximumInput = 32 << 20
        Connection.connect(
            to: access.socket, on: .current, limits: limits,
            receive: Framing.lines(upTo: 16 << 20) { [weak self] _, line in
                self?.deliver(line.withUnsafeBufferPointer { ByteBuffer(bytes: $0) })
            },
            completion: { [weak self] result in
                switch result {
                case .failure: self?.close(.goingAway)
                case .success(let console):
                    guard let self else { return console.close() }
                    self.connected(console)
                }
            })
    }

    private func connected(_ console: Connection) {
        guard context != nil else { return console.close() }
        self.console = console
        // Also called if it cannot start.
        console.closeHandler = { [weak self] _, _ in self?.close(.goingAway) }
        do {
            try console.start()
        } catch {
            client.site.log.warning("the console: \(error)")
        }
    }

    private func deliver(_ line: ByteBuffer) {
        guard let context, context.channel.isWritable else { return }
        send(.text, line)
    }

    private func send(_ opcode: WebSocketOpcode, _ bytes: ByteBuffer) {
        context?.writeAndFlush(wrapOutboundOut(WebSocketFrame(fin: true, opcode: opcode, data: bytes)), promise: nil)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event is ChannelShouldQuiesceEvent { close(.goingAway) }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if error is FrameRules.Broken { close(.protocolError) }
        // The decoder's own errors are answered already.
        if !(error is NIOWebSocketError) { context.close(promise: nil) }
    }

    private func close(_ reason: WebSocketErrorCode) {
        guard let context else { return }
        var bytes = ByteBuffer()
        bytes.write(webSocketErrorCode: reason)
        send(.connectionClose, bytes)
        context.close(promise: nil)
    }
}
