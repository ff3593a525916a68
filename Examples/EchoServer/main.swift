// An echo server on TCP and on a Unix socket: `EchoServer [port] [path] [loops]`. With a number of loops it serves on
// as many threads. Without arguments, it talks to itself and ends.

import RunLoopKit
import RunLoopUnix

@Sendable
func echo(_ loop: RunLoop, _ descriptor: Int32, _ peer: Endpoint) {
    var limits = Connection.Limits()
    limits.idleTimeout = .seconds(60)
    let connection = Connection(adopting: descriptor, on: loop, limits: limits) { connection, bytes in
        connection.write(bytes)
        return bytes.count
    }
    connection.closeHandler = { _, reason in print("\(peer): \(reason)") }
    do { try connection.start() } catch { print("\(peer): \(error)") }
}

let loop = RunLoop.current
let arguments = CommandLine.arguments.dropFirst()

var addresses: [Endpoint] = []
if let port = arguments.first.flatMap(UInt16.init) { addresses.append(try Endpoint("127.0.0.1", port: port)) }
if let path = arguments.dropFirst().first, !path.isEmpty { addresses.append(try Endpoint(path: path)) }

if let count = arguments.dropFirst(2).first.flatMap({ Int($0) }), count > 0 {
    let group = try LoopGroup(count: count, name: "echo")
    for address in addresses { print("listening on \(try group.listen(on: address, echo)), with \(count) loops") }
    group.join()  // for ever
}

var listeners: [Listener] = []
for address in addresses {
    listeners.append(try Listener(address: address, on: loop) { echo(loop, $1, $2) })
    print("listening on \(listeners.last!.address)")
}
if listeners.isEmpty {
    let listener = try Listener(address: Endpoint("127.0.0.1", port: 0), on: loop) { echo(loop, $1, $2) }
    Connection.connect(to: listener.address, on: loop) { connection, bytes in
        print("echoed: \(bytes.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) })")
        connection.finish()
        return bytes.count
    } completion: { result in
        switch result {
        case .failure(let error): print(error)
        case .success(let connection):
            connection.closeHandler = { _, _ in listener.close() }
            do { try connection.start() } catch { print(error) }
            connection.write("hello")
        }
    }
}
loop.run()  // until nothing is left to listen on
