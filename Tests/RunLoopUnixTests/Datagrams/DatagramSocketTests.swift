import Glibc
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@_spi(Ports) @testable import RunLoopUnix

/// The datagrams that a socket has received, as text, and its errors.
final class DatagramLog {
    var texts: [String] = []
    var headers: [DatagramSocket.Header] = []
    var errors: [String] = []

    func receive(_ bytes: Span<UInt8>, _ header: DatagramSocket.Header) {
        texts.append(bytes.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) })
        headers.append(header)
    }

    func note(errorsOf socket: DatagramSocket) {
        socket.errorHandler = { [unowned self] _, error, peer in
            errors.append("\(peer.map { "\($0)" } ?? "unknown") \(error.errno)")
        }
    }
}

@Suite("Datagram sockets")
struct DatagramSocketTests {
    static func anyPort() throws -> Endpoint { try Endpoint("127.0.0.1", port: 0) }

    /// Binds a socket to an address, and returns the answer of its echo to another socket.
    private func echo(_ address: Endpoint, from own: Endpoint, _ simulation: Simulation) throws -> [String] {
        let (loop, log) = (simulation.loop, DatagramLog())
        let server = try DatagramSocket(address: address, on: loop) { socket, bytes, header in
            socket.send(bytes, to: header.sender)
        }
        let client = try DatagramSocket(address: own, on: loop) { log.receive($1, $2) }
        defer { for socket in [server, client] { socket.close() } }
        for text in ["one", "", "three"] { #expect(client.send(text, to: server.address)) }
        simulation.settle { log.texts.count == 3 }
        #expect(log.headers.allSatisfy { $0.sender == server.address && !$0.isTruncated })
        #expect(
            server.receivedCount == 3 && server.sentCount == 3 && client.sentCount == 3 && client.receivedCount == 3)
        return log.texts
    }

    @Test("datagrams are sent and received on IPv4, IPv6, a path, and an abstract name")
    func families() throws {
        try withSimulation { simulation in
            let path = "/tmp/rlk-datagrams-\(getpid())"
            for (address, own) in [
                (try Self.anyPort(), try Self.anyPort()),
                (try Endpoint("::1", port: 0), try Endpoint("::1", port: 0)),
                (try Endpoint(path: path), try Endpoint(path: path + ".own")),
                (try Endpoint(path: "@rlk-d-\(getpid())"), try Endpoint(path: "@rlk-d-own-\(getpid())")),
            ] {
                #expect(try echo(address, from: own, simulation) == ["one", "", "three"])
            }
            #expect(access(path, F_OK) != 0 && access(path + ".own", F_OK) != 0, "the paths are removed at the end")
        }
    }

    @Test("an unnamed Unix socket sends without a name, and a stale path is replaced")
    func unnamed() throws {
        try withSimulation { simulation in
            let (loop, log) = (simulation.loop, DatagramLog())
            let path = "/tmp/rlk-datagrams-stale-\(getpid())"
            let address = try Endpoint(path: path)
            let live = RealSystem.shared.datagramSocket(AF_UNIX)
            #expect(RealSystem.shared.bind(live, to: address) == 0)
            #expect(throws: SystemError.self) { try DatagramSocket(address: address, on: loop) { _, _, _ in } }
            close(live)
            // Until its program begins, a child of another test may hold the closed socket; no process holds this one.
            unlink(path)
            #expect(mknod(path, S_IFSOCK | 0o600, 0) == 0)
            let server = try DatagramSocket(address: address, on: loop) { log.receive($1, $2) }
            let clients = [
                try DatagramSocket(peer: address, on: loop), try DatagramSocket(address: .unnamed, on: loop),
            ]
            clients[0].send("connected")
            clients[1].send("not connected", to: address)
            simulation.settle { log.texts.count == 2 }
            #expect(log.texts == ["connected", "not connected"])
            #expect(log.headers.allSatisfy { $0.sender.path == "" })
            for socket in clients + [server] { socket.close() }
        }
    }

    @Test(
        "an answer from the address that was asked reaches a connected client",
        arguments: [("0.0.0.0", "127.0.0.2"), ("::", "::1"), ("::", "::ffff:127.0.0.2"), ("127.0.0.3", "127.0.0.3")])
    func askedAddress(own: String, asked: String) throws {
        try withSimulation { simulation in
            let (loop, log) = (simulation.loop, DatagramLog())
            var local: Endpoint?
            let server = try DatagramSocket(address: Endpoint(own, port: 0), on: loop) { socket, bytes, header in
                local = header.localAddress
                socket.send(bytes, to: header.sender, from: header.localAddress)
            }
            let address = try Endpoint(asked, port: #require(server.address.port))
            let client = try DatagramSocket(peer: address, on: loop) { log.receive($1, $2) }
            client.send("question")
            simulation.settle { log.texts.count == 1 }
            #expect(log.texts == ["question"] && log.headers.map(\.sender) == [address])
            #expect(local == address, "with the port")
            #expect(log.headers.map(\.localAddress) == [client.address])
            for socket in [server, client] { socket.close() }
        }
    }

    /// Calls `send` for a client that sends together, and runs until the server has received `count` datagrams.
    ///
    /// Returns the log of these datagrams and of the client's errors, and the address of the server.
    private func sendTogether(
        until count: Int, _ send: (_ client: DatagramSocket, _ server: Endpoint) -> Void
    ) throws -> (log: DatagramLog, server: Endpoint) {
        try withSimulation { simulation in
            let (loop, log) = (simulation.loop, DatagramLog())
            let server = try DatagramSocket(address: Self.anyPort(), on: loop) { log.receive($1, $2) }
            let client = try DatagramSocket(address: Self.anyPort(), on: loop) { _, _, _ in }
            log.note(errorsOf: client)
            let address = server.address
            client.sendTogether { send(client, address) }
            simulation.settle { log.texts.count == count }
            for socket in [server, client] { socket.close() }
            return (log, address)
        }
    }

    @Test("a source that the machine does not have, or of another family, is an error of that datagram")
    func foreignSource() throws {
        let (log, server) = try sendTogether(until: 3) { client, server in
            client.send("before", to: server)
            client.send("foreign", to: server, from: try! Endpoint("192.0.2.1", port: 0))
            client.send("between", to: server, from: try! Endpoint("127.0.0.2", port: 0))
            client.send("other family", to: server, from: try! Endpoint("::1", port: 0))
            client.send("after", to: server)
        }
        #expect(log.texts == ["before", "between", "after"])
        #expect(log.headers.map(\.sender.address) == ["127.0.0.1", "127.0.0.2", "127.0.0.1"])
        #expect(log.errors == [ENETUNREACH, EAFNOSUPPORT].map { "\(server) \($0)" })
    }

    @Test(
        "a datagram has the type of service that it is sent with, or else its socket's",
        arguments: ["127.0.0.1", "::1", "::ffff:127.0.0.1"])
    func typeOfService(host: String) throws {
        try withSimulation { simulation in
            let (loop, log) = (simulation.loop, DatagramLog())
            let server = try DatagramSocket(address: Endpoint(host, port: 0), on: loop) { log.receive($1, $2) }
            let client = try DatagramSocket(address: Endpoint(host, port: 0), on: loop) { _, _, _ in }
            let isSix = host == "::1"
            let option = SocketOption<Int>(
                level: Int32(isSix ? IPPROTO_IPV6 : IPPROTO_IP), name: isSix ? IPV6_TCLASS : Int32(IP_TOS))
            client.sendTogether {
                for value in [0, 1, 46 << 2 | 2] as [UInt8] {
                    client.send("own", to: server.address, typeOfService: value)
                }
            }
            try client.setOption(option, to: 8)
            client.send("of the socket", to: server.address)
            simulation.settle { log.texts.count == 4 }
            #expect(log.headers.map(\.typeOfService) == [0, 1, 46 << 2 | 2, 8])
            for socket in [server, client] { socket.close() }
        }
    }

    @Test("equally long datagrams to one peer go to the system, and come from it, in one piece")
    func segments() throws {
        let system = RealSystem.shared
        let receiver = system.datagramSocket(AF_INET)
        defer { close(receiver) }
        #expect(system.bind(receiver, to: try Self.anyPort()) == 0)
        system.reportFacts(of: receiver, AF_INET, together: true)
        try withSimulation { simulation in
            let client = try DatagramSocket(peer: system.localAddress(of: receiver), on: simulation.loop)
            client.sendTogether {
                for size in [1_000, 1_000, 1_000, 7, 7, 7, 7, 1_000, 2_000, 2_000] {
                    client.send([UInt8](repeating: 1, count: size))
                }
            }
            #expect(client.sentCount == 10)
            client.close()
        }
        var room = [UInt8](repeating: 0, count: 65_535)
        var pieces: [[Int]] = []
        room.withUnsafeMutableBytes { room in
            var slot = DatagramSlot()
            slot.bytes = room
            withUnsafeMutablePointer(to: &slot) { slot in
                let slots = UnsafeMutableBufferPointer(start: slot, count: 1)
                while system.receive(receiver, into: slots, withFacts: true) == 1 {
                    pieces.append([slot.pointee.length, slot.pointee.segmentSize])
                }
            }
        }
        // The pieces of 2,000 bytes are longer than an Ethernet packet.
        #expect(pieces == [[3_007, 1_000], [21, 7], [1_000, 0], [2_000, 0], [2_000, 0]])
    }

    @Test("datagrams that came in one piece are passed on one by one, within the budget of a pass")
    func piecesApart() throws {
        try withSimulation { simulation in
            let (loop, log) = (simulation.loop, DatagramLog())
            var options = DatagramSocket.Options()
            options.budget = 3
            var passes: [Int] = []
            let server = try DatagramSocket(address: Self.anyPort(), on: loop, options: options) { _, bytes, header in
                log.receive(bytes, header)
                passes.append(loop.statistics.passes)
            }
            let client = try DatagramSocket(peer: server.address, on: loop)
            let texts = (0..<40).map { "\(100 + $0)" } + ["last"]
            client.sendTogether { for text in texts { client.send(text, typeOfService: 1) } }
            simulation.settle { log.texts.count == texts.count }
            #expect(log.texts == texts && server.receivedCount == texts.count)
            #expect(log.headers.allSatisfy { !$0.isTruncated && $0.sender == client.address && $0.typeOfService == 1 })
            #expect(log.headers.map(\.length) == texts.map(\.utf8.count))
            let most = Dictionary(grouping: passes, by: { $0 }).values.map(\.count).max()
            #expect(most == 3)
            for socket in [server, client] { socket.close() }
        }
    }

    @Test("a pause, and a close, in the middle of a piece hold")
    func pauseInPiece() throws {
        try withSimulation { simulation in
            let (loop, log) = (simulation.loop, DatagramLog())
            let server = try DatagramSocket(address: Self.anyPort(), on: loop) { socket, bytes, header in
                log.receive(bytes, header)
                if log.texts.count == 2 { socket.pauseReceiving() }
                if log.texts.count == 4 { socket.close() }
            }
            let client = try DatagramSocket(peer: server.address, on: loop)
            client.sendTogether { for text in ["1", "2", "3", "4", "5"] { client.send(text) } }
            simulation.settle { log.texts.count == 2 }
            simulation.advance(by: .seconds(1))
            #expect(log.texts == ["1", "2"])
            server.resumeReceiving()
            simulation.settle { !server.isOpen }
            simulation.advance(by: .seconds(1))
            #expect(log.texts == ["1", "2", "3", "4"])
            client.close()
        }
    }

    @Test("a handler that runs the loop is not called within itself, and its datagram stays as it is")
    func nestedInPiece() throws {
        try withSimulation { simulation in
            let (loop, log) = (simulation.loop, DatagramLog())
            var (depth, deepest) = (0, 0)
            let server = try DatagramSocket(address: Self.anyPort(), on: loop) { socket, bytes, header in
                (depth, deepest) = (depth + 1, max(deepest, depth + 1))
                socket.pauseReceiving()
                socket.resumeReceiving()
                loop.run(in: .default, until: loop.now)
                log.receive(bytes, header)
                depth -= 1
            }
            let client = try DatagramSocket(peer: server.address, on: loop)
            client.sendTogether { for text in ["1", "2", "3"] { client.send(text) } }
            simulation.settle { log.texts.count == 3 }
            #expect(log.texts == ["1", "2", "3"] && deepest == 1)
            let pool = DatagramPool.shared(of: loop)
            #expect(pool.take(room: 1) !== pool.take(room: 1), "the memory is in the pool once")
            for socket in [server, client] { socket.close() }
        }
    }

    @Test("a datagram longer than the limit is marked, with its length, and the next one is whole")
    func truncation() throws {
        try withSimulation { simulation in
            let (loop, log) = (simulation.loop, DatagramLog())
            var options = DatagramSocket.Options()
            options.maximumSize = 4
            let server = try DatagramSocket(address: Self.anyPort(), on: loop, options: options) { log.receive($1, $2) }
            let client = try DatagramSocket(peer: server.address, on: loop) { _, _, _ in }
            for text in ["truncated", "four", "5"] { client.send(text) }
            simulation.settle { log.texts.count == 3 }
            #expect(log.texts == ["trun", "four", "5"])
            #expect(log.headers.map(\.length) == [9, 4, 1])
            #expect(log.headers.map(\.isTruncated) == [true, false, false])
            for socket in [server, client] { socket.close() }
        }
    }

    @Test("a datagram that is too long is an error, and those around it are sent")
    func tooLong() throws {
        let (log, server) = try sendTogether(until: 2) { client, server in
            client.send("before", to: server)
            client.send([UInt8](repeating: 0, count: 65_508), to: server)
            client.send("after", to: server)
        }
        #expect(log.texts == ["before", "after"])
        #expect(log.errors == ["\(server) \(EMSGSIZE)"])
    }

    @Test("a refusal names the peer, connected or not, and the socket continues", arguments: [false, true])
    func refusals(isConnected: Bool) throws {
        try withSimulation { simulation in
            let (loop, log, errors) = (simulation.loop, DatagramLog(), DatagramLog())
            // A socket that receives only from itself keeps its port, and the system refuses all others.
            let refuser = try DatagramSocket(address: Self.anyPort(), on: loop) { _, _, _ in }
            let address = refuser.address
            try refuser.connect(to: address)
            let server = try DatagramSocket(address: Self.anyPort(), on: loop) { log.receive($1, $2) }
            let client = try DatagramSocket(
                address: Self.anyPort(), peer: isConnected ? address : nil, on: loop
            ) { _, _, _ in }
            errors.note(errorsOf: client)
            client.send("refused", to: isConnected ? nil : address)
            simulation.settle { !errors.errors.isEmpty }
            #expect(errors.errors == ["\(address) \(ECONNREFUSED)"])
            // The second refusal meets a datagram that is on its way to another receiver.
            client.send("refused", to: isConnected ? nil : address)
            usleep(1_000)
            client.send("hello", to: server.address)
            simulation.settle { log.texts == ["hello"] && errors.errors.count == 2 }
            for socket in [server, client, refuser] { socket.close() }
        }
    }

    @Test("a full queue refuses, and the drain handler tells when there is room; nothing is lost")
    func backPressure() throws {
        try withSimulation { simulation in
            let (loop, log) = (simulation.loop, DatagramLog())
            let address = try Endpoint(path: "@rlk-datagrams-full-\(getpid())")
            let server = try DatagramSocket(address: address, on: loop) { log.receive($1, $2) }
            server.pauseReceiving()
            for isConnected in [true, false] {
                var options = DatagramSocket.Options()
                options.maximumOutput = 1_000
                log.texts = []
                let client =
                    try isConnected
                    ? DatagramSocket(peer: address, on: loop, options: options) { _, _, _ in }
                    : DatagramSocket(address: .unnamed, on: loop, options: options) { _, _, _ in }
                var drains = 0
                client.drainHandler = { _ in drains += 1 }
                var accepted = 0
                while client.send("\(accepted)", to: isConnected ? nil : address) { accepted += 1 }
                #expect(accepted > 10 && client.pendingOutput > 0 && client.pendingOutput <= 1_000)
                simulation.advance(by: .milliseconds(50))
                #expect(log.texts.isEmpty && drains == 0)
                server.resumeReceiving()
                for _ in 0..<100 where log.texts.count < accepted { simulation.advance(by: .milliseconds(5)) }
                #expect(log.texts == (0..<accepted).map { "\($0)" } && drains == 1)
                server.pauseReceiving()
                client.close()
            }
            server.close()
        }
    }

    @Test("a paused handler loses nothing of its batch, and a mode that does not run waits")
    func pauses() throws {
        try withSimulation { simulation in
            let (loop, log) = (simulation.loop, DatagramLog())
            let server = try DatagramSocket(address: Self.anyPort(), on: loop, inModes: .tracking) {
                socket, bytes, header in
                log.receive(bytes, header)
                if log.texts.count == 3 { socket.pauseReceiving() }
            }
            let client = try DatagramSocket(peer: server.address, on: loop) { _, _, _ in }
            client.sendTogether { for number in 0..<10 { client.send("\(number)") } }
            simulation.advance(by: .milliseconds(1))
            #expect(log.texts.isEmpty)
            #expect(
                eventually {
                    loop.run(in: .tracking, until: loop.now)
                    return log.texts.count >= 3
                })
            #expect(log.texts.count == 3)
            server.resumeReceiving()
            simulation.advance(by: .milliseconds(1))
            #expect(log.texts.count == 3)
            loop.run(in: .tracking, until: loop.now)
            #expect(log.texts == (0..<10).map { "\($0)" })
            server.resumeReceiving()
            for socket in [server, client] { socket.close() }
        }
    }

    @Test("a pass receives no more than the budget")
    func budget() throws {
        try withSimulation { simulation in
            let (loop, log) = (simulation.loop, DatagramLog())
            var options = DatagramSocket.Options()
            options.budget = 20
            let server = try DatagramSocket(address: Self.anyPort(), on: loop, options: options) { log.receive($1, $2) }
            let client = try DatagramSocket(peer: server.address, on: loop) { _, _, _ in }
            for number in 0..<50 { client.send("\(number)") }
            var turns: [Int] = []
            while log.texts.count < 50, turns.count < 10_000 {
                let before = log.texts.count
                _ = loop.run(mode: .default, before: loop.now)
                if log.texts.count > before { turns.append(log.texts.count - before) }
            }
            #expect(turns.allSatisfy { $0 <= 20 } && log.texts == (0..<50).map { "\($0)" })
            for socket in [server, client] { socket.close() }
        }
    }

    @Test("a socket that is closed by its handler, or by the end of its loop, drops the rest")
    func closing() throws {
        let log = DatagramLog()
        var left: DatagramSocket?
        try withSimulation { simulation in
            let loop = simulation.loop
            left = try DatagramSocket(address: Self.anyPort(), on: loop) { _, _, _ in }
            let server = try DatagramSocket(address: Self.anyPort(), on: loop) { socket, bytes, header in
                socket.close()
                log.receive(bytes, header)
            }
            let client = try DatagramSocket(peer: server.address, on: loop) { _, _, _ in }
            client.sendTogether { for number in 0..<5 { client.send("\(number)") } }
            simulation.settle { !server.isOpen }
            #expect(log.texts == ["0"] && !server.send("late"))
            #expect(throws: SystemError.self) { try server.connect(to: client.address) }
            #expect(left?.isOpen == true)
        }
        #expect(left?.isOpen == false && left?.hasLostLoop == true)
    }

    @Test("a descriptor of a stream is not adopted, one with datagrams is")
    func adopting() throws {
        try withSimulation { simulation in
            let (loop, log) = (simulation.loop, DatagramLog())
            let (one, other) = makeSockets()
            #expect(throws: SystemError.self) { try DatagramSocket(adopting: one, on: loop) { _, _, _ in } }
            for descriptor in [one, other] { close(descriptor) }
            let descriptor = RealSystem.shared.datagramSocket(AF_INET)
            #expect(RealSystem.shared.bind(descriptor, to: try Self.anyPort()) == 0)
            let server = try DatagramSocket(adopting: descriptor, on: loop) { log.receive($1, $2) }
            let client = try DatagramSocket(peer: server.address, on: loop) { _, _, _ in }
            client.send("hello")
            simulation.settle { log.texts == ["hello"] }
            for socket in [server, client] { socket.close() }
        }
    }

    @Test("the members of a group receive its datagrams, until they leave", arguments: [false, true])
    func groups(isSix: Bool) throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            let logs = [DatagramLog(), DatagramLog()]
            var options = DatagramSocket.Options()
            options.reusesAddress = true
            let group = try isSix ? Endpoint("ff02::1234", port: 0) : Endpoint("239.1.2.3", port: 0)
            var address = try isSix ? Endpoint("::", port: 0) : Endpoint("0.0.0.0", port: 0)
            var members: [DatagramSocket] = []
            for log in logs {
                let member = try DatagramSocket(address: address, on: loop, options: options) { log.receive($1, $2) }
                address = member.address
                try member.join(group, at: "lo")
                members.append(member)
            }
            #expect(throws: SystemError.self) { try members[0].join(group, at: "lo") }
            #expect(throws: SystemError.self) { try members[0].join(group, at: "nowhere") }
            #expect(throws: SystemError.self) { try members[0].join(try Self.anyPort()) }
            // Linux sends no groups of IPv6 over the loopback interface.
            guard !isSix else {
                for member in members {
                    try member.leave(group, at: "lo")
                    member.close()
                }
                return
            }
            let sender = try DatagramSocket(address: Self.anyPort(), on: loop, options: options) { _, _, _ in }
            sender.send("both", to: group.with(port: address.port!))
            simulation.settle { logs.allSatisfy { $0.texts == ["both"] } }
            try members[0].leave(group, at: "lo")
            #expect(throws: SystemError.self) { try members[0].leave(group, at: "lo") }
            for socket in members + [sender] { socket.close() }
        }
    }
}
