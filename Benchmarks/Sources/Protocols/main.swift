// A server of one protocol, on the run loops of RunLoopKit or on SwiftNIO's own event loops, with the same handlers and
// options: `ProtocolServer runloop|nioposix PROTOCOL PORT THREADS`.
import NIOCore
import NIOPosix
import RunLoopNIO
import RunLoopUnix

let usage = "usage: ProtocolServer runloop|nioposix echo|http1|http2|websocket PORT THREADS"
let arguments = CommandLine.arguments
guard arguments.count == 5, let served = ServedProtocol(rawValue: arguments[2]), let port = Int(arguments[3]),
    let threads = Int(arguments[4])
else { fatalError(usage) }

let listener: EventLoopFuture<any Channel>
switch arguments[1] {
case "runloop":
    listener = RunLoopServerBootstrap(group: RunLoopEventLoopGroup(try LoopGroup(count: threads)))
        .serverChannelOption(.backlog, value: 1024)
        .childChannelInitializer(served.prepare)
        .childChannelOption(.socketOption(.tcp_nodelay), value: 1)
        .bind(host: "127.0.0.1", port: port)
case "nioposix":
    listener = ServerBootstrap(group: MultiThreadedEventLoopGroup(numberOfThreads: threads))
        .serverChannelOption(.backlog, value: 1024)
        .childChannelInitializer(served.prepare)
        .childChannelOption(.socketOption(.tcp_nodelay), value: 1)
        .bind(host: "127.0.0.1", port: port)
default: fatalError(usage)
}
try listener.wait().closeFuture.wait()
