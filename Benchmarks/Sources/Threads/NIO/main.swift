// SwiftNIO's echo server, as its users write one: `EchoNIO PORT THREADS`.
import NIOCore
import NIOPosix

private final class Echo: ChannelInboundHandler, Sendable {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        context.write(data, promise: nil)
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        context.flush()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }
}

guard CommandLine.arguments.count == 3, let port = Int(CommandLine.arguments[1]),
    let threads = Int(CommandLine.arguments[2])
else { fatalError("usage: EchoNIO PORT THREADS") }
let group = MultiThreadedEventLoopGroup(numberOfThreads: threads)
let channel = try ServerBootstrap(group: group)
    .serverChannelOption(.backlog, value: 1024)
    .childChannelInitializer { channel in channel.pipeline.addHandler(Echo()) }
    .childChannelOption(.socketOption(.tcp_nodelay), value: 1)
    .bind(host: "127.0.0.1", port: port).wait()
try channel.closeFuture.wait()
