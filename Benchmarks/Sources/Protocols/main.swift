// A server of one protocol, on the run loops of RunLoopKit or on SwiftNIO's own event loops, with the same handlers and
// options, or with RunLoopHTTP in their place: `ProtocolServer runloop|nioposix|exchanges|tasks PROTOCOL PORT THREADS`.
import NIOCore
import NIOPosix
import RunLoopHTTP
import RunLoopKit
import RunLoopNIO
import RunLoopUnix

let usage = "usage: ProtocolServer runloop|nioposix|exchanges|tasks echo|http1|http2|websocket PORT THREADS"
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
case "exchanges", "tasks":
    let server = try makeServer(withTasks: arguments[1] == "tasks", threads: threads)
    var options = Listener.Options()
    options.backlog = 1024
    try server.listen(on: Endpoint("127.0.0.1", port: UInt16(port)), options: options)
    RunLoop.main.run()
    fatalError("the server has ended")
default: fatalError(usage)
}
try listener.wait().closeFuture.wait()
