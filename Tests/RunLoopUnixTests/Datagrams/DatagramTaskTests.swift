import Glibc
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@testable import RunLoopUnix

@Suite("Tasks and datagram sockets")
struct DatagramTaskTests {
    @Test("a task answers the datagrams of another, until the socket is closed")
    func echo() throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            let server = try DatagramSocket(address: DatagramSocketTests.anyPort(), on: loop)
            let client = try DatagramSocket(peer: server.address, on: loop)
            var answers: [[UInt8]] = []
            var hasEnded = false
            loop.task {
                for try await datagram in server.datagrams() {
                    try await server.send(datagram.bytes + [0], to: datagram.sender)
                }
                hasEnded = true
            }
            loop.task {
                for number in 0..<40 as Range<UInt8> {
                    try await client.send([number])
                    if let answer = try await client.receive() { answers.append(answer.bytes) }
                }
                server.close()
                client.close()
            }
            simulation.settle { hasEnded }
            #expect(answers == (0..<40).map { [$0, 0] })
        }
    }

    @Test("a batch is kept for the tasks, and a cancelled wait takes nothing")
    func cancellation() throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            let server = try DatagramSocket(address: DatagramSocketTests.anyPort(), on: loop)
            let client = try DatagramSocket(peer: server.address, on: loop)
            var texts: [String] = []
            var errors: [String] = []
            let waiting = loop.task {
                do { _ = try await server.receive() } catch { errors.append("\(type(of: error))") }
            }
            loop.task {
                do { _ = try await server.receive() } catch { errors.append("\(type(of: error))") }
            }
            simulation.advance(by: .milliseconds(1))
            #expect(errors == ["WaitError"])
            waiting.cancel()
            simulation.advance(by: .milliseconds(1))
            #expect(errors == ["WaitError", "CancellationError"])
            client.sendTogether { for number in 0..<20 { client.send("\(number)") } }
            loop.task {
                while let datagram = try await server.receive() {
                    texts.append(String(decoding: datagram.bytes, as: UTF8.self))
                }
            }
            simulation.settle { texts.count == 20 }
            #expect(texts == (0..<20).map { "\($0)" })
            for socket in [server, client] { socket.close() }
        }
    }

    @Test("a task that sends waits for room, and gets the error of its own datagram")
    func sending() throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            let address = try Endpoint(path: "@rlk-datagram-tasks-\(getpid())")
            var texts: [String] = []
            let server = try DatagramSocket(address: address, on: loop) { _, bytes, _ in
                texts.append(bytes.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) })
            }
            server.pauseReceiving()
            let client = try DatagramSocket(peer: address, on: loop) { _, _, _ in }
            var accepted = 0
            var errors: [Int32] = []
            let sender = loop.task {
                for number in 0..<50 {
                    try await client.send("\(number)")
                    accepted += 1
                }
            }
            simulation.advance(by: .milliseconds(20))
            #expect(accepted > 5 && accepted < 50)
            server.resumeReceiving()
            simulation.settle { texts.count == 50 }
            #expect(texts == (0..<50).map { "\($0)" })
            withExtendedLifetime(sender) {}
            loop.task {
                do { try await client.send([UInt8](repeating: 0, count: 1 << 20)) } catch let error as SystemError {
                    errors.append(error.errno)
                }
                client.close()
                do { try await client.send("late") } catch let error as SystemError { errors.append(error.errno) }
            }
            simulation.settle { errors.count == 2 }
            #expect(errors == [EMSGSIZE, EBADF])
            server.close()
        }
    }
}
