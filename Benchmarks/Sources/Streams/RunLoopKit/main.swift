// An echo server on RunLoopKit: `RunLoopKitEcho PORT [CHAIN KEY]`; with a certificate it speaks TLS.
import RunLoopKit
import RunLoopTLS
import RunLoopUnix

let arguments = CommandLine.arguments
guard arguments.count == 2 || arguments.count == 4, let port = UInt16(arguments[1]) else {
    fatalError("usage: RunLoopKitEcho PORT [CHAIN KEY]")
}
let loop = RunLoop.current
let echo: Connection.ReceiveHandler = { connection, bytes in
    connection.write(bytes)
    return bytes.count
}
let accept: Listener.AcceptHandler
if arguments.count == 4 {
    let identity = TLSIdentity(chain: .file(arguments[2]), key: .file(arguments[3]))
    let context = try TLSServerContext(identity: identity)
    accept = { _, descriptor, _ in
        try? Connection(adopting: descriptor, on: loop, tls: context, receive: echo).start()
    }
} else {
    accept = { _, descriptor, _ in try? Connection(adopting: descriptor, on: loop, receive: echo).start() }
}
let listener = try Listener(address: Endpoint("127.0.0.1", port: port), on: loop, handler: accept)
loop.run()
