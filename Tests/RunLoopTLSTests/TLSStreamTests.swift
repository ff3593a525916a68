import COpenSSL
import Glibc
import RunLoopKit
import RunLoopSimulation
@_spi(Ports) import RunLoopUnix
import TLSTestSupport
import TestSupport
import Testing

@testable import RunLoopTLS

@Suite("TLS streams")
struct TLSStreamTests {
    private static let pattern = randomBytes(8 << 20, seed: 1)

    /// Writes the beginning of the pattern in records of 1,000 bytes, so that a piece of 64 KiB ends within one.
    private static func writeRecords(_ count: Int, to side: Side) {
        for start in stride(from: 0, to: count * 1_000, by: 1_000) {
            side.connection.write(pattern.span.extracting(start..<(start + 1_000)))
        }
    }

    @Test("a relay passes on bytes that came together with the handshake, although a whole turn is sent before them")
    func relayBehindATurn() throws {
        try withSimulation { simulation in
            let (loop, contexts) = (simulation.loop, try Contexts())
            let (one, other) = makeSockets()
            let first = try Connection(adopting: one, on: loop, tls: contexts.server) { $1.count }
            first.pauseReading()
            try first.start()
            let client = try Side.client(other, on: loop, contexts.client)
            client.connection.write("hello")
            simulation.advance(by: .zero)
            #expect(client.isSecured)
            let (two, far) = MemoryStream.pair(capacity: 2 << 20)
            let second = Connection(
                two, on: loop, inModes: .common, limits: .init(), origin: RunLoop.Origin(file: #fileID, line: #line)
            ) { $1.count }
            second.write([UInt8](repeating: 1, count: 1 << 20))
            Relay(between: first, and: second)
            simulation.advance(by: .zero)
            var bytes = [UInt8](repeating: 0, count: 2 << 20)
            #expect(bytes.withUnsafeMutableBytes { far.read(into: $0) } == .done((1 << 20) + 5))
            let text = String(decoding: bytes[(1 << 20)..<(1 << 20) + 5], as: UTF8.self)
            #expect(text == "hello")
            client.connection.close()
            far.close(.incomplete)
        }
    }

    // MARK: Amounts

    @Test("eight MiB go through an echo with small watermarks, and come back as they were")
    func echo() throws {
        try withSimulation { simulation in
            var limits = Connection.Limits()
            limits.highWatermark = 100_000
            limits.lowWatermark = 10_000
            var clientLimits = Connection.Limits()
            clientLimits.highWatermark = 16 << 20
            let (server, client) = try Contexts().connect(
                on: simulation.loop, limits: limits, clientLimits: clientLimits)
            var most = 0
            server.receive = { side, bytes in
                side.connection.write(bytes)
                most = max(most, side.connection.pendingOutput)
                return bytes.count
            }
            for start in stride(from: 0, to: Self.pattern.count, by: 1 << 17) {
                client.connection.write(Self.pattern.span.extracting(start..<(start + (1 << 17))))
            }
            simulation.advance(by: .zero)
            #expect(client.hasReceived(Self.pattern))
            #expect(most <= limits.highWatermark + 64 * 1024, "a peer that does not read is not read")
            client.connection.finish()
            simulation.advance(by: .zero)
            #expect(server.reason == .ended && client.reason == .closed)
        }
    }

    @Test("a peer that does not read fills the buffer up to the limit, and then the connection closes")
    func outputLimit() throws {
        try withSimulation { simulation in
            var limits = Connection.Limits()
            limits.maximumOutput = 1 << 20
            let (server, client) = try Contexts().connect(on: simulation.loop, limits: limits)
            simulation.advance(by: .zero)
            client.connection.pauseReading()
            for _ in 0..<8 { server.connection.write(Self.pattern.span.extracting(0..<(1 << 18))) }
            #expect(server.reason == .outputLimit)
            client.connection.resumeReading()
            simulation.advance(by: .zero)
            #expect(client.error?.kind == .truncated, "what was lost is not passed off as complete")
        }
    }

    @Test("a pass takes no more than 64 KiB of a connection, and what TLS holds needs no readable descriptor")
    func budget() throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            let (server, client) = try Contexts().connect(on: loop)
            simulation.advance(by: .zero)
            var perPass: [Int: Int] = [:]
            server.receive = { _, bytes in
                perPass[loop.statistics.passes, default: 0] += bytes.count
                return bytes.count
            }
            Self.writeRecords(150, to: client)
            simulation.advance(by: .zero)
            #expect(perPass.values.reduce(0, +) == 150_000)
            let most = perPass.values.max()!
            #expect(most > 60_000 && most <= 64 * 1024)
            server.connection.close()
            client.connection.close()
        }
    }

    @Test(
        "over a stream in memory, even byte by byte, it shakes hands, carries everything, and ends",
        arguments: [1, 100_000])
    func inMemory(capacity: Int) throws {
        try withSimulation { simulation in
            let contexts = try Contexts()
            let (one, other) = MemoryStream.pair(capacity: capacity)
            let message = Self.pattern[..<40_000]
            var received: [[UInt8]] = [[], []]
            var reasons: [Connection.CloseReason?] = [nil, nil]
            let sessions = [
                try TLSSession(contexts.server), try TLSSession(contexts.client, serverName: "localhost"),
            ]
            for (index, below) in [one, other].enumerated() {
                let connection = Connection(
                    TLSStream(sessions[index], over: below), on: simulation.loop, inModes: .common,
                    limits: Connection.Limits(), origin: RunLoop.Origin(file: #fileID, line: #line)
                ) { _, bytes in
                    bytes.withUnsafeBufferPointer { received[index] += $0 }
                    return bytes.count
                }
                connection.endHandler = { _ in }
                connection.closeHandler = { reasons[index] = $1 }
                try connection.start()
                connection.write(Array(message))
                connection.finishWriting()
            }
            simulation.settle { !reasons.contains(nil) }
            #expect(reasons == [.ended, .ended])
            let isExact = received.allSatisfy { $0.elementsEqual(message) }
            #expect(isExact)
        }
    }

    // MARK: Pauses and modes

    @Test("bytes decrypted before a pause are delivered after it, although the descriptor is silent")
    func pausing() throws {
        try withSimulation { simulation in
            let (server, client) = try Contexts().connect(on: simulation.loop)
            simulation.advance(by: .zero)
            var count = 0
            server.receive = { side, bytes in
                count += bytes.count
                side.connection.pauseReading()
                return bytes.count
            }
            Self.writeRecords(100, to: client)
            client.connection.finishWriting()
            simulation.advance(by: .seconds(1))
            #expect(count > 60_000 && count <= 64 * 1024)
            server.receive = nil
            var hasEnded = false
            server.connection.endHandler = { _ in hasEnded = true }
            simulation.advance(by: .seconds(1))
            #expect(server.received.isEmpty && !hasEnded)
            server.connection.resumeReading()
            simulation.advance(by: .zero)
            #expect(server.hasReceived(Self.pattern[count..<100_000]))
            #expect(hasEnded)
            server.connection.finish()
            simulation.advance(by: .zero)
            #expect(client.reason == .ended)
        }
    }

    @Test("a paused connection shakes hands all the same, and gives nothing")
    func pausedHandshake() throws {
        try withSimulation { simulation in
            let (server, client) = try Contexts().connect(on: simulation.loop)
            server.connection.pauseReading()
            client.connection.write("early")
            simulation.advance(by: .seconds(1))
            #expect(server.isSecured && client.isSecured)
            #expect(server.text == "")
            server.connection.resumeReading()
            simulation.advance(by: .zero)
            #expect(server.text == "early")
            server.connection.close()
            client.connection.close()
        }
    }

    @Test("in a mode that does not run nothing happens, neither a handshake nor a reading of what TLS holds")
    func modes() throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            let (one, other) = makeSockets()
            let contexts = try Contexts()
            let server = try Side.server(one, on: loop, contexts.server, inModes: .tracking)
            let client = try Side.client(other, on: loop, contexts.client)
            simulation.advance(by: .seconds(5))
            #expect(!server.isSecured && !client.isSecured)
            while !server.isSecured {
                loop.run(in: .tracking, until: loop.now)
                simulation.advance(by: .zero)
            }
            // A handler that ends the run after the first 64 KiB: the rest stays in TLS and waits for the mode.
            server.receive = { side, bytes in
                bytes.withUnsafeBufferPointer { side.received += $0 }
                loop.stop()
                return bytes.count
            }
            Self.writeRecords(100, to: client)
            var before = 0
            while server.received.count < 100_000 {
                loop.run(in: .tracking, until: loop.now)
                #expect(server.received.count > before)
                before = server.received.count
                simulation.advance(by: .seconds(1))
                #expect(server.received.count == before)
            }
            #expect(server.hasReceived(Self.pattern[0..<100_000]))
            server.connection.close()
            client.connection.close()
        }
    }

    @Test("the handshake's timer rests with the connection's modes")
    func timeoutInMode() throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            let (one, other) = makeSockets()
            let server = try Side.server(one, on: loop, Contexts(TLSOptions()).server, inModes: .tracking)
            simulation.advance(by: .seconds(60))
            #expect(server.reason == nil)
            loop.run(in: .tracking, until: loop.now)
            #expect(server.error?.kind == .handshakeTimeout)
            close(other)
        }
    }

    @Test("a nested run within the receive handler does not call it again")
    func nested() throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            let (server, client) = try Contexts().connect(on: loop)
            simulation.advance(by: .zero)
            var depth = 0
            server.receive = { side, bytes in
                #expect(depth == 0)
                depth += 1
                side.connection.pauseReading()
                side.connection.resumeReading()
                loop.run(until: loop.now + .milliseconds(1))
                bytes.withUnsafeBufferPointer { side.received += $0 }
                depth -= 1
                return bytes.count
            }
            client.connection.write(Self.pattern.span.extracting(0..<200_000))
            simulation.advance(by: .seconds(1))
            #expect(server.hasReceived(Self.pattern[0..<200_000]))
            server.connection.close()
            client.connection.close()
        }
    }

    // MARK: Ends

    @Test("a stream that ends without the peer's close_notify is cut off; earlier bytes are delivered before")
    func truncation() throws {
        try withSimulation { simulation in
            let (server, client) = try Contexts().connect(on: simulation.loop)
            var hasEnded = false
            server.connection.endHandler = { _ in hasEnded = true }
            client.connection.write("half of it")
            simulation.advance(by: .zero)
            shutdown(client.connection.fileDescriptor, Int32(SHUT_WR))
            simulation.advance(by: .zero)
            #expect(server.text == "half of it")
            #expect(server.error?.kind == .truncated)
            #expect(!hasEnded)
            client.connection.close()
        }
    }

    @Test("each side ends for itself: the other direction continues")
    func halfClose() throws {
        try withSimulation { simulation in
            let (server, client) = try Contexts().connect(on: simulation.loop)
            var hasEnded = false
            server.connection.endHandler = { connection in
                hasEnded = true
                simulation.loop.perform(afterDelay: .seconds(1)) {
                    connection.write(Self.pattern.span.extracting(0..<500_000))
                    connection.finish()
                }
            }
            client.connection.write("request")
            client.connection.finishWriting()
            client.connection.write("nothing after the end")
            simulation.advance(by: .milliseconds(500))
            #expect(server.text == "request" && hasEnded)
            #expect(server.connection.isOpen && client.connection.isOpen)
            simulation.advance(by: .seconds(1))
            #expect(client.hasReceived(Self.pattern[0..<500_000]))
            #expect(server.reason == .closed && client.reason == .ended)
        }
    }

    @Test("bytes written before finish() arrive, although the peer's tickets were never read")
    func finishing() throws {
        try withSimulation { simulation in
            let (one, other) = makeTCPSockets()
            let contexts = try Contexts()
            let server = try Side.server(one, on: simulation.loop, contexts.server)
            let client = try Side.client(other, on: simulation.loop, contexts.client)
            server.connection.write("unread")
            client.connection.write(Self.pattern.span.extracting(0..<(4 << 20)))
            client.connection.finish()
            simulation.settle { server.reason != nil && client.reason != nil }
            #expect(server.hasReceived(Self.pattern[0..<(4 << 20)]))
            #expect(server.reason == .ended)
            #expect(client.reason == .closed)
        }
    }

    @Test("a peer that does not answer the end is not waited for once its system has everything")
    func lingering() throws {
        try withSimulation { simulation in
            let (server, client) = try Contexts().connect(on: simulation.loop)
            server.connection.endHandler = { _ in }
            simulation.advance(by: .zero)
            client.connection.finish()
            simulation.advance(by: .milliseconds(99))
            #expect(client.reason == nil)
            simulation.advance(by: .milliseconds(1))
            #expect(client.reason == .closed)
            server.connection.close()
        }
    }

    @Test("finishing within a deadline ends also a handshake that goes nowhere")
    func finishDuringHandshake() throws {
        try withSimulation { simulation in
            let (one, other) = makeSockets()
            let client = try Side.client(one, on: simulation.loop, Contexts().client)
            client.connection.write("never sent")
            client.connection.finish(within: .seconds(3))
            simulation.advance(by: .seconds(3))
            #expect(client.reason == .totalTimeout)
            close(other)
        }
    }

    @Test("a peer that has gone is an error, and no signal that kills")
    func noSignal() async {
        await #expect(processExitsWith: .exitCode(0)) { try runWithoutPeer() }
    }

    // MARK: Many

    @Test("five hundred short connections leave nothing behind")
    func memory() async {
        await #expect(processExitsWith: .exitCode(0)) { try runManyConnections() }
    }
}

/// Writes to a peer that has gone without notice; ends the process with 0 if the result is an error and no signal.
private func runWithoutPeer() throws {
    signal(SIGPIPE, SIG_DFL)
    try withSimulation { simulation in
        let (server, client) = try Contexts().connect(on: simulation.loop)
        simulation.advance(by: .zero)
        shutdown(client.connection.fileDescriptor, Int32(SHUT_RDWR))
        server.connection.write("to nobody")
        guard case .failed(let error as SystemError) = server.reason, error.errno == EPIPE else { _exit(2) }
        _exit(0)
    }
}

/// The number of pieces of memory that OpenSSL holds; one thread counts.
private nonisolated(unsafe) var pieces = 0

/// Makes five hundred connections; ends the process with 0 if the last ones hold no more memory than the first.
private func runManyConnections() throws {
    let isCounted = CRYPTO_set_mem_functions(
        { size, _, _ in
            pieces += 1
            return malloc(size)
        },
        { memory, size, _, _ in
            if memory == nil { pieces += 1 }
            return realloc(memory, size)
        },
        { memory, _, _ in
            if memory != nil { pieces -= 1 }
            free(memory)
        })
    guard isCounted == 1 else { _exit(2) }
    try withSimulation { simulation in
        let contexts = try Contexts()
        weak var last: Connection?
        func converse(_ count: Int) throws {
            for _ in 0..<count {
                let (server, client) = try contexts.connect(on: simulation.loop)
                client.connection.write("ping")
                client.connection.finish()
                simulation.advance(by: .zero)
                guard server.text == "ping", server.reason == .ended, client.reason == .closed else { _exit(3) }
                last = server.connection
            }
        }
        try converse(100)
        let before = pieces
        try converse(400)
        guard last == nil else { _exit(4) }
        print("OpenSSL held \(before) pieces of memory, and holds \(pieces)")
        guard pieces - before < 50 else { _exit(5) }
        _exit(0)
    }
}
