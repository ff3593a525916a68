// The costs of channels, whose names would be mistaken for those of the loop elsewhere.
import NIOCore
import RunLoopKit
import RunLoopNIO

/// Sends back all bytes that are received.
private final class Echo: ChannelInboundHandler, Sendable {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        context.write(data, promise: nil)
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        context.flush()
    }
}

/// Sends back received bytes from a handler of SwiftNIO.
func echoByChannel(_ loop: RunLoop, _ count: Int) {
    let (server, peer) = sockets()
    let remote = loop.remote
    RunLoopClientBootstrap(group: loop.nio)
        .channelInitializer { $0.pipeline.addHandler(Echo()) }
        .withConnectedSocket(server)
        .flatMap { $0.closeFuture }
        .whenComplete { _ in remote.perform { $0.stop() } }
    let thread = converse(peer, times: count)
    loop.run(in: .default)
    thread.join()
}
