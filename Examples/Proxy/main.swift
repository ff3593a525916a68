// A proxy for TCP: `Proxy port host upstreamPort [chain.pem key.pem]` passes each connection on to a host, which it looks up
// by name and tries again if it does not answer. With a certificate its own side speaks TLS. Without arguments it passes a
// greeting on to an echo server of its own, and ends. Its messages go to standard error and wait for no reader.

import Glibc
import RunLoopKit
import RunLoopTLS
import RunLoopUnix

/// The connection of a client and that of the host.
struct Proxy {
    let loop: RunLoop
    let host: String
    let port: UInt16
    let tls: TLSServerContext?

    /// The most bytes of a client that wait until the host is connected; further bytes wait at the client.
    private static let mostWaiting = 64 * 1024

    func listen(on address: Endpoint) throws -> Listener {
        try Listener(address: address, on: loop) { _, descriptor, peer in serve(descriptor, peer) }
    }

    private func serve(_ descriptor: Int32, _ peer: Endpoint) {
        let client: Connection
        // The client's bytes wait until the host is connected.
        var waiting = 0
        let receive: Connection.ReceiveHandler = { client, bytes in
            waiting = bytes.count
            if waiting >= Proxy.mostWaiting { client.pauseReading() }
            return 0
        }
        do {
            client =
                if let tls {
                    try Connection(adopting: descriptor, on: loop, tls: tls, receive: receive)
                } else {
                    Connection(adopting: descriptor, on: loop, receive: receive)
                }
            try client.start()
        } catch {
            return say("\(peer): \(error)")
        }
        var retry = Connection.Retry()
        retry.totalTimeout = .seconds(10)
        let attempt = Connection.connect(host: host, port: port, on: loop, timeout: .seconds(5), retry: retry) { _, _ in
            0
        } completion: { result in
            switch result {
            case .success(let upstream):
                client.closeHandler = nil
                Relay(between: client, and: upstream, idleTimeout: .seconds(300)) { relay, reason in
                    say("\(relay.bytesFromFirst) bytes there, \(relay.bytesFromSecond) back: \(reason)")
                }
            case .failure(let error):
                say("\(host): \(error)")
                // A regular end would look like an empty answer.
                client.reset()
            }
        }
        client.closeHandler = { _, _ in attempt.cancel() }
        // A client that ends after sending may wait for the answer. Any other client has left.
        client.endHandler = { client in if waiting == 0 { client.close() } }
    }
}

func say(_ text: String) {
    StandardError.shared.write(text + "\n")
}

/// An echo server, and a client that says hello to it through the proxy.
func demonstrate(on loop: RunLoop) throws {
    let echo = try Listener(address: Endpoint("127.0.0.1", port: 0), on: loop) { _, descriptor, _ in
        let connection = Connection(adopting: descriptor, on: loop) {
            $0.write($1); return $1.count
        }
        try? connection.start()
    }
    let proxy = Proxy(loop: loop, host: "127.0.0.1", port: echo.address.port!, tls: nil)
    let listener = try proxy.listen(on: Endpoint("127.0.0.1", port: 0))
    Connection.connect(
        to: listener.address, on: loop,
        receive: Framing.lines { connection, line in
            say("echoed: \(line.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) })")
            connection.finish()
            listener.close()
            echo.close()
        }
    ) { result in
        guard case .success(let connection) = result, (try? connection.start()) != nil else { return }
        connection.write("hello\n")
    }
}

let loop = RunLoop.current
let arguments = CommandLine.arguments
do {
    if arguments.count == 1 {
        try demonstrate(on: loop)
    } else if arguments.count == 4 || arguments.count == 6, let port = UInt16(arguments[1]),
        let upstreamPort = UInt16(arguments[3])
    {
        let tls =
            try arguments.count == 6
            ? TLSServerContext(identity: TLSIdentity(chain: .file(arguments[4]), key: .file(arguments[5]))) : nil
        let proxy = Proxy(loop: loop, host: arguments[2], port: upstreamPort, tls: tls)
        say("listening on \(try proxy.listen(on: Endpoint("127.0.0.1", port: port)).address)")
    } else {
        say("usage: Proxy port host upstreamPort [chain.pem key.pem]")
        exit(EX_USAGE)
    }
    loop.run()  // until nothing is left to listen on
} catch {
    say("\(error)")
    exit(EX_CONFIG)
}
