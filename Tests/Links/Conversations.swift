import RunLoopHosts
import RunLoopKit
import RunLoopUnix

extension Conversation {
    /// All conversations, in the order of the page *What a simulation promises*.
    static let all = [
        request, jitter, transfer, lossyTransfer, refusal, silence, lateAnswer, healedCut, cutForGood, reset,
        unreadInput,
        killedServer, halfClosure, slowReader, datagrams, longDatagrams, refusedDatagram,
    ]

    static let request = Conversation(
        name: "a request and its reply", link: NetworkLink(latency: .milliseconds(50)),
        server: { side in
            try side.accept { connection in
                try await side.read(100, from: connection)
                try await connection.withStream { try await $0.write(Side.bytes(200)) }
            }
        },
        client: { side in
            side.connect { connection in
                try await connection.write(Side.bytes(100))
                try await side.readToEnd(200, from: connection)
            }
        },
        expected: [
            .server: ["accepted", "first byte", "received 100 bytes", "closed: closed"],
            .client: ["connected", "first byte", "received 200 bytes", "closed: ended", "end"],
        ])

    /// Requests with jitter, which lets packets overtake one another, but not the bytes of a connection. Tolerance: a
    /// busy machine delays each packet, which adds up.
    static let jitter = Conversation(
        name: "thirty requests with jitter", link: NetworkLink(latency: .milliseconds(10), jitter: .milliseconds(10)),
        tolerance: Tolerance(share: 0.1, time: .milliseconds(40)), isRandom: true,
        server: { side in
            try side.accept { connection in
                try await connection.withStream { while let bytes = try await $0.read() { try await $0.write(bytes) } }
            }
        },
        client: { side in
            side.connect { connection in
                for _ in 1...30 {
                    try await connection.write([1])
                    _ = try await connection.read()
                }
                side.note("thirty replies")
                connection.finish()
            }
        },
        expected: [
            .server: ["accepted", "closed: closed"], .client: ["connected", "thirty replies", "closed: closed"],
        ])

    /// A transfer. Tolerance: the headers of packets, which take a share of the bandwidth and are not simulated.
    static let transfer = Conversation(
        name: "three megabytes, ten megabits a second",
        link: NetworkLink(latency: .milliseconds(25), bandwidth: 1_250_000),
        tolerance: Tolerance(share: 0.05, time: .milliseconds(100)),
        server: sends(3_000_000), client: receives(3_000_000),
        expected: transferred(3_000_000))

    /// A transfer with losses. Tolerance: chance, and the kernel's several ways to notice a loss, of which the
    /// simulation has two.
    static let lossyTransfer = Conversation(
        name: "two megabytes, 2 % lost", link: NetworkLink(latency: .milliseconds(10), lossRate: 0.02),
        tolerance: Tolerance(share: 0.4, time: .milliseconds(200)), isRandom: true,
        server: sends(2_000_000), client: receives(2_000_000),
        expected: transferred(2_000_000))

    private static func sends(_ count: Int) -> Program {
        { side in
            try side.accept { connection in try await connection.withStream { try await $0.write(Side.bytes(count)) } }
        }
    }

    private static func receives(_ count: Int) -> Program {
        { side in side.connect { try await side.readToEnd(count, from: $0) } }
    }

    private static func transferred(_ count: Int) -> [Side.Name: [String]] {
        [
            .server: ["accepted", "closed: closed"],
            .client: ["connected", "first byte", "received \(count) bytes", "closed: ended", "end"],
        ]
    }
}
