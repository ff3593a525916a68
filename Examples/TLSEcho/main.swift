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
    let server = try TLSServerContext(identity: TLSIdentity(chain: .file(arguments[1]), key: .file(arguments[2])))
    let listener = try Listener(address: Endpoint("127.0.0.1", port: port ?? 0), on: loop) { _, descriptor, peer in
        do {
            let connection = try Connection(adopting: descriptor, on: loop, tls: server) { connection, bytes in
                connection.write(bytes)
                return bytes.count
            }
            connection.handshakeHandler = { print("\(peer): \($0.tls!.version) \($0.tls!.cipher!)") }
            connection.closeHandler = { _, reason in print("\(peer): \(reason)") }
            try connection.start()
        } catch {
            print("\(peer): \(error)")
        }
    }
    print("listening on \(listener.address)")
    if port == nil { try talk(to: listener, on: loop, trusting: arguments[1]) }
    loop.run()  // until nothing is left to listen on
} catch {
    print(error)
    exit(EX_CONFIG)
}

/// Says hello, trusting only the server's own certificate.
func talk(to listener: Listener, on loop: RunLoop, trusting chain: String) throws {
    let client = try TLSClientContext(roots: .certificates(.file(chain)))
    try Connection.connect(to: listener.address, on: loop, tls: client, serverName: "localhost") { connection, bytes in
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
