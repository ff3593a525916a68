import RunLoopHosts
import RunLoopKit
import RunLoopUnix

/// Conversations with peers and links that fail.
extension Conversation {
    static let refusal = Conversation(
        name: "nobody listens", link: NetworkLink(latency: .milliseconds(50)),
        server: { _ in },
        client: { $0.connect() },
        expected: [.server: [], .client: ["connect to 10.7.0.1:7: Connection refused (errno 111)"]])

    static let silence = Conversation(
        name: "a machine that is cut off", link: NetworkLink(latency: .milliseconds(50)),
        faults: [.cut(at: .zero, until: nil)],
        server: { _ in },
        client: { $0.connect(timeout: .milliseconds(1_500)) },
        expected: [.server: [], .client: ["connect to 10.7.0.1:7: Connection timed out (errno 110)"]])

    /// A link that is cut while connecting. The kernel asks again after one second, and then after another one.
    /// Tolerance: its timers are a little late.
    static let lateAnswer = Conversation(
        name: "a cut while connecting", link: NetworkLink(latency: .milliseconds(50)),
        faults: [.cut(at: .zero, until: .milliseconds(1_500))],
        tolerance: Tolerance(share: 0.05, time: .milliseconds(40)),
        server: { side in try side.accept { try await side.readToEnd(0, from: $0) } },
        client: { side in side.connect { $0.finish() } },
        expected: [
            .server: ["accepted", "received 0 bytes", "closed: ended", "end"],
            .client: ["connected", "closed: closed"],
        ])

    /// A byte every 100 ms, while the link is cut and heals; the bytes lost in the cut are sent again. Tolerance: the
    /// pauses between tries double, so the first one after the cut may be late by the length of the cut.
    static let healedCut = Conversation(
        name: "a cut that heals", link: NetworkLink(latency: .milliseconds(25)),
        faults: [.cut(at: .milliseconds(560), until: .milliseconds(1_300))],
        tolerance: Tolerance(time: .milliseconds(740)),
        server: { side in
            try side.accept { connection in
                for number in 1...20 where try await connection.read(atMost: 1) != nil {
                    if number == 6 { side.note("first byte after the cut") }
                }
                side.note("twenty bytes")
                try await side.readToEnd(0, from: connection)
            }
        },
        client: { side in
            side.connect { connection in
                for byte in Side.bytes(20) {
                    try await connection.write([byte])
                    try await side.loop.clock.sleep(for: .milliseconds(100))
                }
                connection.finish()
            }
        },
        expected: [
            .server: [
                "accepted", "first byte after the cut", "twenty bytes", "received 0 bytes", "closed: ended", "end",
            ],
            .client: ["connected", "closed: closed"],
        ])

    private static let impatient = {
        var limits = Connection.Limits()
        limits.inputTimeout = .seconds(1)
        return limits
    }()

    static let cutForGood = Conversation(
        name: "a cut that does not heal, with a limit", link: NetworkLink(latency: .milliseconds(25)),
        faults: [.cut(at: .milliseconds(560), until: nil)],
        server: { side in
            try side.accept(impatient) { connection in
                while let bytes = try await connection.read() { try await connection.write(bytes) }
            }
        },
        client: { side in
            side.connect(impatient) { connection in
                try await connection.write([1])
                _ = try await connection.read()
                side.note("reply")
                try await side.loop.clock.sleep(for: .milliseconds(600))
                try await connection.write([2])
                _ = try await connection.read()
            }
        },
        expected: [
            .server: [
                "accepted", "closed: idleTimeout", "the connection was closed: idleTimeout",
            ],
            .client: ["connected", "reply", "closed: idleTimeout", "the connection was closed: idleTimeout"],
        ])

    /// A reset in the middle. Tolerance: the kernel sends in packets, the simulation in pieces of several.
    static let reset = Conversation(
        name: "a reset in the middle", link: NetworkLink(latency: .milliseconds(25)),
        tolerance: Tolerance(share: 0.15, time: .milliseconds(40)),
        server: { side in
            try side.accept { connection in
                try await side.read(100_000, from: connection)
                connection.reset()
            }
        },
        client: { side in
            side.connect { connection in
                do { try await connection.write(Side.bytes(2_000_000)) } catch is Connection.WriteError {}
            }
        },
        expected: [
            .server: ["accepted", "first byte", "received 100000 bytes", "closed: closed"],
            .client: [
                "connected", "closed: failed(write to the connection: Connection reset by peer (errno 104))",
            ],
        ])

    static let unreadInput = Conversation(
        name: "a peer that closes with unread input", link: NetworkLink(latency: .milliseconds(25)),
        server: { side in
            try side.accept { connection in
                try await side.read(1, from: connection)
                connection.pauseReading()
                try await side.loop.clock.sleep(for: .milliseconds(300))
                connection.close()
            }
        },
        client: { side in
            side.connect { connection in
                try await connection.write([0])
                try await side.loop.clock.sleep(for: .milliseconds(200))
                try await connection.write(Side.bytes(1_000))
                try await side.readToEnd(0, from: connection)
            }
        },
        expected: [
            .server: ["accepted", "first byte", "received 1 bytes", "closed: closed"],
            .client: [
                "connected", "received 0 bytes",
                "closed: failed(read from the connection: Connection reset by peer (errno 104))",
                "the connection was closed: failed(read from the connection: Connection reset by peer (errno 104))",
            ],
        ])

    /// A killed server. The kernel closes the sockets of a killed process; without unread input that is an end like any
    /// other.
    static let killedServer = Conversation(
        name: "a server that is killed", link: NetworkLink(latency: .milliseconds(25)),
        faults: [.killServer(at: .milliseconds(400))],
        server: { side in try side.accept { try await side.readToEnd(100, from: $0) } },
        client: { side in
            side.connect { connection in
                try await connection.write(Side.bytes(50))
                try await side.readToEnd(0, from: connection)
            }
        },
        expected: [
            .server: ["accepted", "first byte"],
            .client: ["connected", "received 0 bytes", "closed: ended", "end"],
        ])

    /// An end while bytes are under way. Tolerance: one round trip more or less before the window is large enough, in
    /// packets and in pieces.
    static let halfClosure = Conversation(
        name: "an end while bytes are under way", link: NetworkLink(latency: .milliseconds(25)),
        tolerance: Tolerance(share: 0.15, time: .milliseconds(60)),
        server: { side in
            try side.accept { connection in
                try await connection.withStream {
                    try await side.readToEnd(200_000, from: $0)
                    try await $0.write(Side.bytes(100_000))
                }
            }
        },
        client: { side in
            side.connect { connection in
                try await connection.write(Side.bytes(200_000))
                connection.finishWriting()
                try await side.readToEnd(100_000, from: connection)
            }
        },
        expected: [
            .server: ["accepted", "first byte", "received 200000 bytes", "end", "closed: closed"],
            .client: ["connected", "first byte", "received 100000 bytes", "closed: ended", "end"],
        ])

    /// `finish()` waits for a peer that rests, and loses nothing. Tolerance: two round trips, and a
    /// burst of packets.
    static let slowReader = Conversation(
        name: "a finish, and a reader that rests", link: NetworkLink(latency: .milliseconds(25)),
        tolerance: Tolerance(share: 0.1, time: .milliseconds(100)),
        server: { side in
            try side.accept { connection in
                try await connection.write(Side.bytes(2_000_000))
                connection.finish()
            }
        },
        client: { side in
            side.connect { connection in
                try await side.loop.clock.sleep(for: .seconds(1))
                try await side.readToEnd(2_000_000, from: connection)
            }
        },
        expected: [
            .server: ["accepted", "closed: closed"],
            .client: ["connected", "first byte", "received 2000000 bytes", "closed: ended", "end"],
        ])
}
