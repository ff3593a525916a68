// An echo server on TCP and on a Unix socket: `EchoServer [port] [path]`. Without arguments it talks to itself and ends.

import RunLoopKit
import RunLoopUnix

func serve(_ address: Endpoint, on loop: RunLoop) throws -> Listener {
    try Listener(address: address, on: loop) { _, descriptor, peer in
        var limits = Connection.Limits()
        limits.idleTimeout = .seconds(60)
        let connection = Connection(adopting: descriptor, on: loop, limits: limits) { connection, bytes in
            connection.write(bytes)
            return bytes.count
        }
        connection.closeHandler = { _, reason in print("\(peer): \(reason)") }
        do { try connection.start() } catch { print("\(peer): \(error)") }
    }
}

let loop = RunLoop.current
let arguments = CommandLine.arguments.dropFirst()

var listeners: [Listener] = []
if let port = arguments.first.flatMap(UInt16.init) {
    listeners.append(try serve(Endpoint("127.0.0.1", port: port), on: loop))
}
if let path = arguments.dropFirst().first { listeners.append(try serve(Endpoint(path: path), on: loop)) }
for listener in listeners { print("listening on \(listener.address)") }

if listeners.isEmpty {
    let listener = try serve(Endpoint("127.0.0.1", port: 0), on: loop)
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
