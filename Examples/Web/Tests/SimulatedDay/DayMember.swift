import NIOCore
import NIOHTTP1
import NIOWebSocket
import RunLoopKit
import RunLoopNIO

/// A member of the chat throughout the day: it comes back whenever its connection ends.
final class DayMember {
    private let loop: RunLoop
    let name: String
    let day: Day
    private var random: RunLoop.RandomNumbers
    private var sent = 0

    init(_ number: Int, on loop: RunLoop, _ day: Day) {
        (self.loop, self.day) = (loop, day)
        name = "m\(number)"
        random = loop.randomNumbers
        join()
    }

    func nextMessage() -> String {
        sent += 1
        return "\(name)-\(sent)"
    }

    func delay(upTo seconds: Int) -> TimeAmount { .seconds(.random(in: 1...Int64(seconds), using: &random)) }

    func join() {
        let bound = NIOLoopBound(self, eventLoop: loop.nio)
        let connect = { @Sendable in
            let upgrader = NIOWebSocketClientUpgrader(requestKey: "MDEyMzQ1Njc4OWFiY2RlZg==") { channel, _ in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(DaySession(bound.value))
                }
            }
            RunLoopClientBootstrap(group: bound.value.loop.nio)
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        let opening = DayOpening(bound.value)
                        let removal = NIOLoopBound(opening, eventLoop: channel.eventLoop)
                        try channel.pipeline.syncOperations.addHTTPClientHandlers(
                            withClientUpgrade: (
                                upgraders: [upgrader],
                                completionHandler: {
                                    $0.pipeline.syncOperations.removeHandler(removal.value, promise: nil)
                                }
                            ))
                        try channel.pipeline.syncOperations.addHandler(opening)
                    }
                }
                .connect(host: "web", port: 80)
                .whenFailure { _ in bound.value.join() }
        }
        loop.perform(afterDelay: .seconds(Int.random(in: 1...60, using: &random))) { connect() }
    }
}

/// Asks for the change to WebSocket.
private final class DayOpening: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias OutboundOut = HTTPClientRequestPart

    private let member: DayMember
    private var hasClosed = false

    init(_ member: DayMember) {
        self.member = member
    }

    func channelActive(context: ChannelHandlerContext) {
        let headers: HTTPHeaders = ["host": "web", "content-length": "0"]
        let head = HTTPRequestHead(version: .http1_1, method: .GET, uri: "/chat", headers: headers)
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        context.eventLoop.scheduleTask(in: .minutes(10)) {
            let (opening, context) = bound.value
            if context.channel.isActive, !opening.isRemoved { context.close(promise: nil) }
        }
    }

    private var isRemoved = false

    func handlerRemoved(context: ChannelHandlerContext) { isRemoved = true }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // A daemon that stops has no chat.
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) { member.join() }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}

/// A connection to the chat.
private final class DaySession: ChannelInboundHandler {
    typealias InboundIn = WebSocketFrame
    typealias OutboundOut = WebSocketFrame

    private let member: DayMember
    private var last: String?
    private var own: (text: String, sent: NIODeadline)?
    private var silence: Scheduled<Void>?

    init(_ member: DayMember) {
        self.member = member
    }

    func handlerAdded(context: ChannelHandlerContext) {
        post(later: context)
        watch(context)
    }

    private func post(later context: ChannelHandlerContext) {
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        context.eventLoop.scheduleTask(in: member.delay(upTo: 3_600)) {
            let (session, context) = bound.value
            guard context.channel.isActive else { return }
            session.post(context)
            session.post(later: context)
        }
    }

    private func post(_ context: ChannelHandlerContext) {
        guard own == nil else {
            return member.day.fail("\(own!.text) has not come back to its sender, who is connected")
        }
        let text = member.nextMessage()
        own = (text, context.eventLoop.now)
        send(.text, ByteBuffer(string: text), context)
    }

    private func send(_ opcode: WebSocketOpcode, _ bytes: ByteBuffer, _ context: ChannelHandlerContext) {
        let frame = WebSocketFrame(fin: true, opcode: opcode, maskKey: [1, 2, 3, 4], data: bytes)
        context.writeAndFlush(wrapOutboundOut(frame), promise: nil)
    }

    /// The daemon pings each minute: silence is a cut link.
    private func watch(_ context: ChannelHandlerContext) {
        silence?.cancel()
        let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
        silence = context.eventLoop.scheduleTask(in: .minutes(3)) { bound.value.close(promise: nil) }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        watch(context)
        let frame = unwrapInboundIn(data)
        switch frame.opcode {
        case .text:
            let text = String(buffer: frame.data)
            member.day.receive(text, after: last, by: member.name)
            last = text
            if own?.text == text { own = nil }
        case .ping: send(.pong, frame.data, context)
        case .connectionClose:
            send(.connectionClose, frame.data, context)
            context.close(promise: nil)
        default: break
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        silence?.cancel()
        member.join()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
