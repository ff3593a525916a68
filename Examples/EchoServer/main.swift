// An echo server on TCP and on a Unix socket: `EchoServer [port] [path] [loops]`. With a number of loops it serves on
// as many threads. Without arguments, it talks to itself and ends.

import RunLoopKit
import RunLoopUnix

@Sendable
func echo(_ connection: Connection, _ peer: Endpoint) {
    connection.limits.idleTimeout = .seconds(60)
    connection.receiveHandler = { connection, bytes in
        connection.write(bytes)
        return bytes.count
    }
    connection.closeHandler = { _, reason in print("\(peer): \(reason)") }
}

let loop = RunLoop.current
let arguments = CommandLine.arguments.dropFirst()

var addresses: [Endpoint] = []
if let port = arguments.first.flatMap(UInt16.init) { addresses.append(try Endpoint("127.0.0.1", port: port)) }
if let path = arguments.dropFirst().first, !path.isEmpty { addresses.append(try Endpoint(path: path)) }

let count = arguments.dropFirst(2).first.flatMap { Int($0) } ?? 0
let server =
    try count > 0 ? Server(on: LoopGroup(count: count, name: "echo"), serve: echo) : Server(on: loop, serve: echo)
server.errorHandler = { _, error in print(error) }
for address in addresses {
    print("listening on \(try server.listen(on: address))\(count > 0 ? ", with \(count) loops" : "")")
}
if addresses.isEmpty {
    let address = try server.listen(on: Endpoint("127.0.0.1", port: 0))
    Connection.connect(to: address, on: loop) { connection, bytes in
        print("echoed: \(bytes.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) })")
        connection.finish()
        return bytes.count
    } completion: { result in
        do {
            let connection = try result.get()
            connection.closeHandler = { _, _ in server.shutDown() }
            try connection.start()
            connection.write("hello")
        } catch { print(error) }
    }
}
loop.run()  // until the server has shut down
