// An echo server on SwiftNIO: `NIOEcho PORT [CHAIN KEY]`; with a certificate it speaks TLS.
import NIOCore
import NIOPosix
import NIOSSL

final class Echo: ChannelInboundHandler {
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

let arguments = CommandLine.arguments
guard arguments.count == 2 || arguments.count == 4, let port = Int(arguments[1]) else {
    fatalError("usage: NIOEcho PORT [CHAIN KEY]")
}
var tls: NIOSSLContext?
if arguments.count == 4 {
    let chain = try NIOSSLCertificate.fromPEMFile(arguments[2]).map { NIOSSLCertificateSource.certificate($0) }
    let key = try NIOSSLPrivateKey(file: arguments[3], format: .pem)
    tls = try NIOSSLContext(
        configuration: .makeServerConfiguration(certificateChain: chain, privateKey: .privateKey(key)))
}
let context = tls
let listener = try ServerBootstrap(group: MultiThreadedEventLoopGroup(numberOfThreads: 1))
    .serverChannelOption(.backlog, value: 1024)
    .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
            if let context { try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: context)) }
            try channel.pipeline.syncOperations.addHandler(Echo())
        }
    }
    .childChannelOption(.socketOption(.tcp_nodelay), value: 1)
    .bind(host: "127.0.0.1", port: port)
try listener.wait().closeFuture.wait()
