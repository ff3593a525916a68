// A proxy for TCP: `Proxy port host upstreamPort [chain.pem key.pem]` passes each connection on to a host, which it
// looks up by name and tries again if it does not answer. With a certificate its own side speaks TLS. `--record file`
// in front of them records the run, and `--replay file` repeats it. Without arguments, it passes a greeting on to an
// echo server of its own, and ends. Messages go to standard error without waiting for a reader.

import Glibc
import RunLoopKit
import RunLoopRecording
import RunLoopTLS
import RunLoopUnix

/// The connections of a client and of the host.
struct Proxy {
    let loop: RunLoop
    let host: String
    let port: UInt16
    let tls: TLSServerContext?

    /// The largest number of a client's bytes that wait until the host is connected; further bytes wait at the client.
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

/// Runs an echo server, and a client that says hello to it through the proxy.
func demonstrate(on loop: RunLoop) throws {
    let echo = Server(on: loop) { connection, _ in
        connection.receiveHandler = {
            $0.write($1); return $1.count
        }
    }
    let port = try echo.listen(on: Endpoint("127.0.0.1", port: 0)).port!
    let proxy = Proxy(loop: loop, host: "127.0.0.1", port: port, tls: nil)
    let listener = try proxy.listen(on: Endpoint("127.0.0.1", port: 0))
    Connection.connect(
        to: listener.address, on: loop,
        receive: Framing.lines { connection, line in
            say("echoed: \(line.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) })")
            connection.finish()
            listener.close()
            echo.shutDown()
        }
    ) { result in
        do {
            let connection = try result.get()
            try connection.start()
            connection.write("hello\n")
        } catch { say("\(error)") }
    }
}

/// Runs the proxy with the arguments.
func run(_ arguments: [String], on loop: RunLoop) throws {
    if arguments.isEmpty {
        try demonstrate(on: loop)
    } else if arguments.count == 3 || arguments.count == 5, let port = UInt16(arguments[0]),
        let upstreamPort = UInt16(arguments[2])
    {
        let tls =
            try arguments.count == 5
            ? TLSServerContext(identity: TLSIdentity(chain: .file(arguments[3]), key: .file(arguments[4]))) : nil
        let proxy = Proxy(loop: loop, host: arguments[1], port: upstreamPort, tls: tls)
        say("listening on \(try proxy.listen(on: Endpoint("127.0.0.1", port: port)).address)")
    } else {
        say("usage: Proxy [--record file | --replay file] port host upstreamPort [chain.pem key.pem]")
        exit(EX_USAGE)
    }
    loop.run()  // until nothing is left to listen on
}

var arguments = Array(CommandLine.arguments.dropFirst())
var files: [String: String] = [:]
if arguments.count >= 2, ["--record", "--replay"].contains(arguments[0]) {
    files[arguments[0]] = arguments[1]
    arguments.removeFirst(2)
}
do {
    let mode = RecordMode(record: files["--record"], replay: files["--replay"])
    try withRecord(mode) { try run(arguments, on: .current) }
} catch {
    say("\(error)")
    exit(EX_CONFIG)
}
