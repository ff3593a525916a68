import Glibc
import RunLoopKit
import RunLoopUnix
import TestSupport
import Testing

/// Tests in processes of their own, in which no other test opens descriptors.
@Suite("Cancelled waits leave nothing", .timeLimit(.minutes(15)))
struct CancelledWaitTests {
    /// The number of waits; `make stress` cancels ten times as many.
    private static let count = amount(of: "CANCELLED_WAITS", usually: 1000)

    /// Runs `body` on a loop of its own, and checks that nothing is left of it.
    private static func leavesNothing(
        _ body: nonisolated(nonsending) @escaping @Sendable (RunLoop, inout SeededGenerator) async throws -> Void
    ) async throws {
        let seed = UInt64.random(in: 0 ... .max)
        try await withLoop { loop in
            // The system's libraries have other files open at any time, some only for a moment.
            func sockets() -> [String] { openFiles().filter { $0.hasPrefix("socket:") }.sorted() }
            func left() -> [String] { loop.dump().items.map { "\($0)" }.filter { !$0.hasPrefix("executor") } }
            try await loop.clock.sleep(for: .microseconds(1))
            let (socketsBefore, itemsBefore) = (sockets(), left())
            var random = SeededGenerator(seed: seed)
            try await body(loop, &random)
            // Operations under way when a wait was cancelled end by themselves.
            let limit = loop.now + .seconds(60)
            while sockets() != socketsBefore || left() != itemsBefore, loop.now < limit {
                try await loop.clock.sleep(for: .milliseconds(1))
            }
            let (socketsAfter, itemsAfter) = (sockets(), left())
            // In the message, because only the message of another process is shown.
            #expect(socketsAfter == socketsBefore, "seed \(seed): \(socketsBefore), now \(socketsAfter)")
            #expect(itemsAfter == itemsBefore, "seed \(seed): \(itemsBefore), now \(itemsAfter)")
        }
    }

    /// Lets a task begin, and sometimes the loop make some passes.
    private static nonisolated(nonsending) func wait(on loop: RunLoop, _ random: inout SeededGenerator) async {
        for _ in 0..<Int.random(in: 0...2, using: &random) { await Task.yield() }
        for _ in 0..<Int.random(in: 0...2, using: &random) { await pass(of: loop) }
    }

    @Test("thousands of reads, of a connection each")
    func reads() async {
        await #expect(processExitsWith: .success) { try await Self.leavesNothing(Self.cancelReads) }
    }

    @Sendable
    private static nonisolated(nonsending) func cancelReads(
        on loop: RunLoop, _ random: inout SeededGenerator
    ) async throws {
        for _ in 0..<count {
            let sockets = makeSockets()
            let (connection, peer) = (Connection(adopting: sockets.0, on: loop), Peer(sockets.1))
            let task = loop.task { try await connection.withStream { try await $0.read() } }
            await wait(on: loop, &random)
            if Bool.random(using: &random) { peer.send("x") }
            await wait(on: loop, &random)
            task.cancel()
            do {
                let bytes = try await task.value
                #expect(bytes == [0x78])
            } catch is CancellationError {}
        }
    }

    @Test("thousands of connects, to a listener that accepts and to one that does not")
    func connects() async {
        await #expect(processExitsWith: .success) { try await Self.leavesNothing(Self.cancelConnects) }
    }

    @Sendable
    private static nonisolated(nonsending) func cancelConnects(
        on loop: RunLoop, _ random: inout SeededGenerator
    ) async throws {
        let listener = try Listener(address: Endpoint("127.0.0.1", port: 0), on: loop) { _, descriptor, _ in
            close(descriptor)
        }
        // A listener that does not accept, and whose queue is full.
        let deaf = try makeDeafListener()
        for _ in 0..<count {
            let address = Bool.random(using: &random) ? listener.address : deaf.address
            let task = loop.task { try await Connection.connect(to: address, on: loop).close() }
            await wait(on: loop, &random)
            task.cancel()
            do { try await task.value } catch is CancellationError {}
        }
        listener.close()
        deaf.close()
    }

    @Test("thousands of accepts, which lose no connection")
    func accepts() async {
        await #expect(processExitsWith: .success) { try await Self.leavesNothing(Self.cancelAccepts) }
    }

    @Sendable
    private static nonisolated(nonsending) func cancelAccepts(
        on loop: RunLoop, _ random: inout SeededGenerator
    ) async throws {
        let directory = TemporaryDirectory()
        let listener = try Listener(address: Endpoint(path: directory["socket"]), on: loop)
        var (asked, accepted) = (0, 0)
        func accept() -> Task<Void, any Error> {
            loop.task {
                let connection = try await listener.accept()!
                let number = accepted
                accepted += 1
                // A task of its own, which is not cancelled.
                let bytes = try await loop.task { try await connection.read() }.value
                #expect(bytes == Array("\(number)".utf8))
                connection.close()
            }
        }
        for _ in 0..<count {
            let task = accept()
            await wait(on: loop, &random)
            if Bool.random(using: &random) {
                Peer(connectedTo: listener.address).send("\(asked)")
                asked += 1
            }
            await wait(on: loop, &random)
            task.cancel()
            do { try await task.value } catch is CancellationError {}
            // No more than fit into the system's queue.
            while asked - accepted > 100 { try await accept().value }
        }
        while accepted < asked { try await accept().value }
        listener.close()
    }
}

/// Makes a listening socket with a full queue, so that connections to it wait.
private func makeDeafListener() throws -> (address: Endpoint, close: () -> Void) {
    let listener = socket(AF_INET, SocketKind.stream | SocketKind.closedOnExec, 0)
    precondition(listen(listener, 0) == 0, "errno \(errno)")
    var peers = [listener]
    var address = sockaddr_in()
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    withUnsafeMutablePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
            precondition(getsockname(listener, address, &length) == 0)
            // The first fill the queue, the last wait.
            for _ in 0..<4 {
                peers.append(
                    socket(AF_INET, SocketKind.stream | SocketKind.closedOnExec | SocketKind.nonBlocking, 0))
                connect(peers.last!, address, length)
            }
        }
    }
    let opened = peers
    return (
        try Endpoint("127.0.0.1", port: UInt16(bigEndian: address.sin_port)), { for peer in opened { close(peer) } }
    )
}
