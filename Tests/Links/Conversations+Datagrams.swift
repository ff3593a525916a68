import RunLoopHosts
import RunLoopKit
import RunLoopUnix

extension Conversation {
    private static let sent = 400

    /// Datagrams with losses. Tolerance: five times the deviation of the difference of two medians of such numbers,
    /// which is about five.
    static let datagrams = Conversation(
        name: "datagrams, some lost, doubled and overtaken",
        link: {
            var link = NetworkLink(latency: .milliseconds(20), lossRate: 0.1)
            (link.duplicationRate, link.reorderingRate) = (0.1, 0.2)
            return link
        }(),
        countTolerance: 25, isRandom: true,
        server: { side in
            let socket = try DatagramSocket(address: Side.server, on: side.loop)
            side.task {
                var (numbers, last, doubled, overtaken) = (Set<UInt16>(), UInt16.zero, 0, 0)
                while let datagram = try await socket.receive(), !datagram.bytes.isEmpty {
                    let number = UInt16(datagram.bytes[0]) << 8 | UInt16(datagram.bytes[1])
                    if !numbers.insert(number).inserted { doubled += 1 }
                    if number < last { overtaken += 1 }
                    last = max(last, number)
                }
                side.note("received", numbers.count)
                side.note("doubled", doubled)
                side.note("overtaken", overtaken)
                socket.close()
            }
        },
        client: { side in
            let socket = try DatagramSocket(peer: Side.server, on: side.loop)
            side.task {
                let start = side.loop.now
                for number in 1...sent {
                    try await side.loop.clock.sleep(until: start + .milliseconds(3) * number)
                    try await socket.send([UInt8(number >> 8), UInt8(number & 0xff)])
                }
                // The end comes after the others, and one of eight is not lost.
                try await side.loop.clock.sleep(for: .milliseconds(100))
                for _ in 1...8 { try await socket.send([]) }
                side.note("sent")
                socket.close()
            }
        },
        expected: [.server: ["received", "doubled", "overtaken"], .client: ["sent"]])

    static let longDatagrams = Conversation(
        name: "datagrams longer than a packet", link: NetworkLink(latency: .milliseconds(20)),
        server: { side in
            let socket = try DatagramSocket(address: Side.server, on: side.loop)
            side.task {
                let datagram = try await socket.receive()
                side.note("received \(datagram?.bytes.count ?? 0) bytes")
                socket.close()
            }
        },
        client: { side in
            var options = DatagramSocket.Options()
            options.allowsFragments = false
            let whole = try DatagramSocket(peer: Side.server, on: side.loop, options: options)
            let pieces = try DatagramSocket(peer: Side.server, on: side.loop)
            side.task {
                defer { whole.close() }
                do { try await whole.send(Side.bytes(1_473)) } catch { side.note("\(error)") }
                try await pieces.send(Side.bytes(5_000))
                side.note("sent")
                pieces.close()
            }
        },
        expected: [
            .server: ["received 5000 bytes"],
            .client: ["send a datagram: Message too long (errno 90)", "sent"],
        ])

    static let refusedDatagram = Conversation(
        name: "a datagram that nobody receives", link: NetworkLink(latency: .milliseconds(50)),
        server: { _ in },
        client: { side in
            let socket = try DatagramSocket(peer: Side.server, on: side.loop) { _, _, _ in }
            socket.errorHandler = { socket, error, peer in
                side.note("\(error) of \(peer.map { "\($0)" } ?? "nobody")")
                socket.close()
            }
            socket.send([1])
        },
        expected: [
            .server: [],
            .client: ["deliver a datagram: Connection refused (errno 111) of 10.7.0.1:7"],
        ])
}
