@_spi(Ports) internal import RunLoopKit
internal import RunLoopSimulation
@_spi(Ports) internal import RunLoopUnix
internal import TestSupport
internal import Testing

extension StreamCheck {
    static let ofReadiness = [
        StreamCheck("a stream that opens later reports that once, before all other events", opening),
        StreamCheck("a quiet stream reports nothing", quiet),
        StreamCheck("only events that the owner waits for are reported", awaited),
        StreamCheck("unread bytes are reported in each pass", everyPass),
        StreamCheck("nothing is reported in a mode that the stream was not opened in", modes),
        StreamCheck(
            "a stream that has left its loop keeps its bytes, not its owner, and can be opened again", leaving),
        StreamCheck("the sources of a stream have its name in reports", names),
        StreamCheck("an owner is kept until its stream is closed, and receives no event afterwards", owner),
        StreamCheck("a stream reports the end of its loop to its owner", loopEnds),
    ]

    private static func opening(_ subject: StreamSubject) throws {
        try withSimulation { simulation in
            let users = try subject.makeUsers(in: simulation)
            defer {
                users.0.close(.incomplete)
                users.1.close(.incomplete)
            }
            for user in [users.0, users.1] {
                let opensLater = !user.stream.isOpen
                try user.open(on: simulation.loop)
                user.write([1, 2, 3])
                #expect(opensLater == !user.stream.isOpen, "a stream opens in a call, without a report")
            }
            let opensLater = [users.0, users.1].map { !$0.stream.isOpen }
            #expect(simulation.reaches { users.0.received.count >= 3 && users.1.received.count >= 3 })
            for (user, opensLater) in zip([users.0, users.1], opensLater) {
                #expect(user.events.filter { $0 == .opened }.count == (opensLater ? 1 : 0))
                if opensLater { #expect(user.events.first == .opened) }
                #expect(user.received == [1, 2, 3])
            }
        }
    }

    /// Reads the bytes that a stream sends by itself, such as the rest of a handshake, and clears the events.
    private static func settle(_ simulation: Simulation, _ users: StreamUser...) {
        simulation.advance(by: .seconds(1))
        for user in users { user.events = [] }
    }

    private static func quiet(_ subject: StreamSubject) throws {
        try subject.run { simulation, one, other in
            settle(simulation, one, other)
            simulation.advance(by: .seconds(1))
            #expect(one.events == [] && other.events == [])
        }
    }

    private static func awaited(_ subject: StreamSubject) throws {
        try subject.run { simulation, one, other in
            settle(simulation, one, other)
            other.reads = false
            one.write([1])
            simulation.advance(by: .seconds(1))
            #expect(other.events == [])
            other.takes = false
            other.fixedInterest = .writable
            // Single passes: an owner that takes nothing has an event in each of them.
            for _ in 0..<3 { simulation.loop.run(mode: .default, before: simulation.now) }
            #expect(other.events == Array(repeating: .ready(.writable), count: 3))
            other.fixedInterest = nil
            other.takes = true
            other.reads = true
            #expect(simulation.reaches { !other.received.isEmpty })
            #expect(other.received == [1])
        }
    }

    private static func everyPass(_ subject: StreamSubject) throws {
        try subject.run { simulation, one, other in
            let loop = simulation.loop
            settle(simulation, one, other)
            other.takes = false
            one.write([1])
            // Single passes: an owner that takes nothing has an event in each of them.
            for _ in 0..<1000 where other.events.isEmpty {
                loop.run(mode: .default, before: loop.now + .milliseconds(1))
            }
            other.events = []
            for _ in 0..<3 { loop.run(mode: .default, before: loop.now) }
            #expect(other.events == Array(repeating: .ready(.readable), count: 3))
            other.takes = true
            #expect(simulation.reaches { !other.received.isEmpty })
        }
    }

    /// Opens a stream for an owner that only the stream keeps.
    private static func own(
        _ stream: any ByteStream, on loop: RunLoop, _ body: (StreamUser) -> Void
    ) throws -> Weak<StreamUser> {
        let user = StreamUser(stream)
        try user.open(on: loop)
        body(user)
        return Weak(user)
    }

    /// Moves an end to another owner, in the tracking mode.
    private static func move(_ user: StreamUser, in simulation: Simulation) throws -> StreamUser {
        user.leave()
        let next = StreamUser(user.stream)
        try next.open(on: simulation.loop, inModes: .tracking)
        return next
    }

    private static func modes(_ subject: StreamSubject) throws {
        try subject.run { simulation, one, other in
            settle(simulation, one, other)
            let tracked = try move(other, in: simulation)
            one.write([1, 2])
            simulation.advance(by: .seconds(1))
            #expect(tracked.events == [] && tracked.received == [])
            #expect(simulation.reaches { tracked.received.count >= 2 })
            #expect(tracked.received == [1, 2])
        }
    }

    private static func leaving(_ subject: StreamSubject) throws {
        try subject.run { simulation, one, other in
            settle(simulation, one, other)
            other.reads = false
            one.write([1])
            simulation.advance(by: .seconds(1))
            other.leave()
            let second = try own(other.stream, on: simulation.loop) { user in
                user.reads = false
                user.write([5])
                user.leave()
            }
            #expect(second.isGone, "a stream that has left its loop keeps its owner")
            one.write([2])
            simulation.advance(by: .seconds(1))
            #expect(other.events == [], "a stream that has left its loop reports")
            let last = StreamUser(other.stream)
            try last.open(on: simulation.loop, inModes: .tracking)
            one.write([3])
            last.write([6])
            #expect(simulation.reaches { last.received.count >= 3 && one.received.count >= 2 })
            #expect(last.received == [1, 2, 3] && one.received == [5, 6])
        }
    }

    private static func names(_ subject: StreamSubject) throws {
        try withSimulation { simulation in
            let (one, other) = try subject.makeUsers(in: simulation)
            defer {
                one.close(.incomplete)
                other.close(.incomplete)
            }
            #expect(one.stream.name == nil)
            one.stream.name = "early name"
            for user in [one, other] { try user.open(on: simulation.loop) }
            other.stream.name = "late name"
            #expect(one.stream.name == "early name" && other.stream.name == "late name")
            let report = "\(simulation.loop.dump())"
            #expect(report.contains("early name") && report.contains("late name"), "\(report)")
        }
    }

    private static func owner(_ subject: StreamSubject) throws {
        try subject.run { simulation, one, other in
            settle(simulation, one, other)
            other.leave()
            let owner = try own(other.stream, on: simulation.loop) { _ in }
            #expect(!owner.isGone, "a stream has let its owner go")
            one.write([1])
            #expect(simulation.reaches { owner.object?.received == [1] })
            other.stream.close(.incomplete)
            #expect(owner.isGone, "a closed stream keeps its owner")
            one.write([2])
            simulation.advance(by: .seconds(1))
        }
    }

    private static func loopEnds(_ subject: StreamSubject) throws {
        var users: [StreamUser] = []
        try withSimulation { simulation in
            let (one, other) = try subject.makeUsers(in: simulation)
            users = [one, other]
            for user in users { try user.open(on: simulation.loop) }
            #expect(simulation.reaches { one.stream.isOpen && other.stream.isOpen })
        }
        for user in users { #expect(user.events.last == .lostLoop) }
    }
}
