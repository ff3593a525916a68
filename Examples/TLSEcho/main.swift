// An echo server that speaks TLS: `TLSEcho chain.pem key.pem [port]`. Without a port it talks to itself and ends.
//
//   openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 \
//     -keyout key.pem -out chain.pem -subj /CN=localhost -addext subjectAltName=DNS:localhost
//   TLSEcho chain.pem key.pem 7443 &
//   openssl s_client -connect localhost:7443 -CAfile chain.pem

import Glibc
import RunLoopKit
import RunLoopTLS
import RunLoopUnix

let loop = RunLoop.current
let arguments = CommandLine.arguments
guard arguments.count > 2 else {
    print("usage: TLSEcho chain.pem key.pem [port]")
    exit(EX_USAGE)
}
let port = arguments.dropFirst(3).first.flatMap(UInt16.init)

do {
    let server = Server(on: loop) { connection, peer in
        connection.receiveHandler = { connection, bytes in
            connection.write(bytes)
            return bytes.count
        }
        connection.handshakeHandler = { print("\(peer): \($0.tls!.version) \($0.tls!.cipher!)") }
        connection.closeHandler = { _, reason in print("\(peer): \(reason)") }
    }
    server.errorHandler = { _, error in print(error) }
    server.setTLS(
        try TLSServerContext(identity: TLSIdentity(chain: .file(arguments[1]), key: .file(arguments[2]))))
    let address = try server.listen(on: Endpoint("127.0.0.1", port: port ?? 0))
    print("listening on \(address)")
    if port == nil { try talk(to: server, at: address, on: loop, trusting: arguments[1]) }
    loop.run()  // until the server has shut down
} catch {
    print(error)
    exit(EX_CONFIG)
}

/// Says hello, trusting only the server's own certificate.
func talk(to server: Server, at address: Endpoint, on loop: RunLoop, trusting chain: String) throws {
    let client = try TLSClientContext(roots: .certificates(.file(chain)))
    try Connection.connect(to: address, on: loop, tls: client, serverName: "localhost") { connection, bytes in
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
