import Glibc
@_spi(Ports) import RunLoopCore
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@_spi(Ports) @testable import RunLoopUnix

/// An address that does not answer: its socket listens with a full backlog, so the kernel drops packets for it.
private final class BlackHole {
    let address: Endpoint
    private let descriptor: Int32
    private let filler: Peer

    init(_ text: String, port: UInt16 = 0) throws {
        let wanted = try Endpoint(text, port: port)
        descriptor = socket(wanted.family, SocketKind.stream | SocketKind.closedOnExec, 0)
        let own = descriptor
        let status = wanted.withSystemAddress { bind(own, $0, $1) }
        precondition(status == 0 && listen(descriptor, 0) == 0, "no black hole at \(wanted): errno \(errno)")
        address = Endpoint(filledBy: { getsockname(own, $0, &$1) })
        filler = Peer(connectedTo: address)
        // Connected on this side; the queue is full when the acknowledgement has arrived, which a busy machine may
        // delay.
        var arrival = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        precondition(poll(&arrival, 1, -1) == 1)
    }

    var port: UInt16 { address.port! }

    /// Makes room in the queue.
    func open() {
        close(accept(descriptor, nil, nil))
    }

    deinit {
        close(descriptor)
    }
}

/// Returns the open sockets of this process that are connected, or being connected, to a port of 127.8.0.0/24. A child
/// that is being spawned may hold others for a moment.
private func socketsConnecting(to port: UInt16) -> Int {
    let digits = String(port, radix: 16, uppercase: true)
    let suffix = "00087F:" + String(repeating: "0", count: 4 - digits.count) + digits
    let own = Set(openFiles())
    // A set, because a table that changes while it is read may have a line twice.
    var inodes: Set<Substring> = []
    for path in ["/proc/self/net/tcp", "/proc/self/net/tcp6"] {
        for line in contents(of: path).split(separator: "\n").dropFirst() {
            let fields = line.split(separator: " ")
            if fields[2].hasSuffix(suffix) && own.contains("socket:[\(fields[9])]") { inodes.insert(fields[9]) }
        }
    }
    return inodes.count
}

/// Addresses on the loopback interface without listeners of other tests.
private let hole4 = "127.8.0.1"
private let open4 = "127.8.0.2"
private let closed4 = "127.8.0.3"
private let hole6 = "::ffff:127.8.0.4"
private let open6 = "::ffff:127.8.0.5"
private let closed6 = "::ffff:127.8.0.6"

/// The shared state of the tests of a simulation: the name server's answers, and the outcomes.
private final class Bench {
    let simulation: Simulation
    /// The latency of the name server.
    let latency = Locked(Duration.zero)
    /// The name server's answers in order; the last one repeats.
    let answers = Locked<[Result<[String], HostResolver.LookupError>]>([])
    let questions = Locked<[RunLoop.Instant]>([])
    var listener: Listener?
    var errors: [Connection.ConnectError] = []
    var connection: Connection?
    /// The times of the outcomes.
    var dates: [RunLoop.Instant] = []

    init(_ simulation: Simulation, _ addresses: [String]) {
        self.simulation = simulation
        answers.withLock { $0 = [.success(addresses)] }
        HostResolver.finder.set(
            { [latency, answers, questions] _ in
                questions.withLock { $0.append(simulation.now) }
                simulation.spend(latency.withLock { $0 })
                let answer = answers.withLock { $0.count > 1 ? $0.removeFirst() : $0[0] }
                return answer.map { $0.map { try! Endpoint($0, port: 0) } }
            }, in: simulation.loop.world)
    }

    func listen(at address: String, port: UInt16 = 0) throws {
        listener = try Listener(address: Endpoint(address, port: port), on: simulation.loop) {
            close($1); _ = $2
        }
    }

    @discardableResult
    func connect(
        _ port: UInt16, inModes modes: RunLoop.Modes = .common, timeout: Duration = .seconds(30),
        retry: Connection.Retry? = nil, keeping token: Token? = nil
    ) -> ConnectionAttempt {
        Connection.connect(
            host: "host.test", port: port, on: simulation.loop, inModes: modes, timeout: timeout, retry: retry
        ) {
            $1.count
        } completion: { [self] result in
            token?.touch()
            dates.append(simulation.now)
            switch result {
            case .success(let made): connection = made
            case .failure(let error): errors.append(error)
            }
        }
    }

    /// The address of the connection's other side.
    var peer: String? {
        connection.map { made in
            Endpoint(filledBy: { getpeername(made.fileDescriptor, $0, &$1) }).description
        }
    }

    /// The reasons of the last error, by address.
    var reasons: [String] {
        guard case .addresses(let errors)? = errors.last else { return [] }
        return errors.map { "\($0.operation.dropFirst("connect to ".count)) \($0.errno)" }
    }
}

/// Calls `body` with a bench in a simulation. Its connections are closed at the end.
private func withBench(_ addresses: [String], _ body: (Simulation, Bench) throws -> Void) rethrows {
    try withSimulation { simulation in
        let bench = Bench(simulation, addresses)
        try body(simulation, bench)
        bench.connection?.close()
        bench.listener?.close()
    }
}

/// Calls `body` with a port without a listener. The port belongs to an otherwise unused black hole.
private func withClosedPort(_ body: (UInt16) throws -> Void) throws {
    let owner = try BlackHole(hole4)
    try withExtendedLifetime(owner) { try body(owner.port) }
}

/// Tests run one after another, because they share addresses.
@Suite("Connecting to hosts", .serialized)
struct ConnectingToHostsTests {
    @Test("the families take turns, IPv6 first, and within a family the order stays")
    func order() throws {
        func order(_ addresses: [String]) throws -> [String] {
            try SocketRace.order(addresses.map { try Endpoint($0, port: 1) }).map {
                String($0.description.dropLast(2).trimmingPrefix("[").prefix { $0 != "]" })
            }
        }
        #expect(try order(["10.0.0.1", "10.0.0.2", "::1", "::2"]) == ["::1", "10.0.0.1", "::2", "10.0.0.2"])
        #expect(try order(["::3", "::2", "::1", "10.0.0.1"]) == ["::3", "10.0.0.1", "::2", "::1"])
        #expect(try order(["10.0.0.3", "::1", "10.0.0.2", "10.0.0.1"]) == ["::1", "10.0.0.3", "10.0.0.2", "10.0.0.1"])
        #expect(try order(["10.0.0.2", "10.0.0.1"]) == ["10.0.0.2", "10.0.0.1"])
        #expect(try order([]) == [])
    }

    @Test("the first address that answers is connected to, regardless of family", arguments: ["127.0.0.1", "::1"])
    func eitherFamily(address: String) throws {
        try withBench([address]) { simulation, bench in
            try bench.listen(at: address)
            bench.connect(bench.listener!.address.port!)
            #expect(bench.dates.isEmpty, "never before the call has returned")
            simulation.advance(by: .seconds(60))
            #expect(bench.peer == bench.listener!.address.description)
            #expect(bench.dates == [ms(0)])
        }
    }

    @Test("of two families that answer IPv6 is taken, and IPv4 is not begun")
    func both() throws {
        try withBench([open4, open6]) { simulation, bench in
            try bench.listen(at: open6)
            let port = bench.listener!.address.port!
            let other = try Listener(address: Endpoint(open4, port: port), on: simulation.loop) {
                close($1); _ = $2
            }
            bench.connect(port)
            simulation.advance(by: .seconds(60))
            #expect(bench.peer == "[\(open6)]:\(port)")
            #expect(other.acceptedCount == 0 && bench.listener!.acceptedCount == 1)
            other.close()
        }
    }

    @Test("after a refusal the next address is begun at once", arguments: [[closed6, open4], [open4, closed6]])
    func refused(addresses: [String]) throws {
        try withBench(addresses) { simulation, bench in
            try bench.listen(at: open4)
            bench.connect(bench.listener!.address.port!)
            simulation.advance(by: .seconds(60))
            #expect(bench.peer == bench.listener!.address.description)
            #expect(bench.dates == [ms(0)])
        }
    }

    @Test("an address that does not answer within 250 ms gets company, and loses to it")
    func stagger() throws {
        try withBench([hole6, open4]) { simulation, bench in
            let hole = try BlackHole(hole6)
            try bench.listen(at: open4, port: hole.port)
            bench.connect(hole.port)
            simulation.advance(by: .milliseconds(249))
            #expect(socketsConnecting(to: hole.port) == 2, "the filler's and one of ours")
            #expect(bench.dates.isEmpty)
            simulation.advance(by: .milliseconds(1))
            #expect(bench.peer == "\(open4):\(hole.port)")
            #expect(bench.dates == [ms(250)])
            #expect(socketsConnecting(to: hole.port) == 2, "the filler's and the connection; the loser is closed")
            simulation.advance(by: .seconds(60))
            #expect(bench.dates.count == 1)
        }
    }

    @Test("each address begins 250 ms after the one before, and a refusal in between calls the next one at once")
    func staggers() throws {
        try withBench([hole6, closed6, open6, hole4]) { simulation, bench in
            // In turn: hole6 at 0, hole4 at 250, closed6 at 500 and, when it has failed, open6.
            let hole = try BlackHole(hole6)
            let second = try BlackHole(hole4, port: hole.port)
            try bench.listen(at: open6, port: hole.port)
            bench.connect(hole.port)
            var counts: [Int] = []
            for step in [249, 1, 249] {
                simulation.advance(by: .milliseconds(step))
                counts.append(socketsConnecting(to: hole.port) - 2)
            }
            #expect(counts == [1, 2, 2])
            simulation.advance(by: .seconds(60))
            #expect(bench.peer == "[\(open6)]:\(hole.port)")
            #expect(bench.dates == [ms(500)])
            #expect(socketsConnecting(to: hole.port) == 3, "the fillers' and the connection")
            withExtendedLifetime(second) {}
        }
    }

    @Test("an address that answers late wins over those that were begun after it")
    func lateWinner() throws {
        try withBench([hole6, hole4]) { simulation, bench in
            let one = try BlackHole(hole6)
            let two = try BlackHole(hole4, port: one.port)
            bench.connect(one.port, timeout: .seconds(3_600))
            simulation.advance(by: .milliseconds(300))
            #expect(socketsConnecting(to: one.port) == 4 && bench.dates.isEmpty)
            // The kernel retransmits dropped packets, in real time.
            one.open()
            simulation.settle { !bench.dates.isEmpty }
            #expect(bench.peer == "[\(hole6)]:\(one.port)")
            #expect(socketsConnecting(to: one.port) == 3, "the fillers' and the connection")
            withExtendedLifetime(two) {}
        }
    }

    @Test("when all addresses refuse, every refusal is reported, in order of arrival")
    func allRefuse() throws {
        try withClosedPort { port in
            withBench([closed4, closed6]) { simulation, bench in
                bench.connect(port)
                simulation.advance(by: .seconds(60))
                #expect(
                    bench.reasons == ["[\(closed6)]:\(port) \(ECONNREFUSED)", "\(closed4):\(port) \(ECONNREFUSED)"])
                #expect(bench.dates == [ms(0)])
                #expect(
                    bench.errors.first?.description
                        == "connect to [\(closed6)]:\(port): Connection refused (errno \(ECONNREFUSED)); "
                        + "connect to \(closed4):\(port): Connection refused (errno \(ECONNREFUSED))")
            }
        }
    }

    @Test("an address that the system cannot reach is one that has failed")
    func unreachable() throws {
        // A connection to a multicast address fails, which the system reports in the call itself.
        try withBench(["ff02::1", open4]) { simulation, bench in
            try bench.listen(at: open4)
            bench.connect(bench.listener!.address.port!)
            simulation.advance(by: .seconds(1))
            #expect(bench.peer == bench.listener!.address.description && bench.dates == [ms(0)])
        }
    }

    @Test("the look-up and all addresses have one deadline together")
    func deadline() throws {
        try withBench([hole6, closed4, hole4]) { simulation, bench in
            let hole = try BlackHole(hole6)
            let second = try BlackHole(hole4, port: hole.port)
            bench.latency.withLock { $0 = .seconds(2) }
            bench.connect(hole.port, timeout: .seconds(5))
            simulation.advance(by: .milliseconds(4_999))
            #expect(bench.dates.isEmpty && socketsConnecting(to: hole.port) == 4)
            simulation.advance(by: .milliseconds(1))
            #expect(bench.dates == [ms(5_000)])
            #expect(
                bench.reasons == [
                    "\(closed4):\(hole.port) \(ECONNREFUSED)", "[\(hole6)]:\(hole.port) \(ETIMEDOUT)",
                    "\(hole4):\(hole.port) \(ETIMEDOUT)",
                ])
            #expect(socketsConnecting(to: hole.port) == 2, "the fillers'")
            withExtendedLifetime(second) {}
        }
    }

    @Test("a deadline before the next address's turn ends it, and 30 s is the deadline unless another is given")
    func deadlines() throws {
        try withBench([hole6, open4]) { simulation, bench in
            let hole = try BlackHole(hole6)
            try bench.listen(at: open4, port: hole.port)
            bench.connect(hole.port, timeout: .milliseconds(100))
            simulation.advance(by: .seconds(1))
            #expect(bench.reasons == ["[\(hole6)]:\(hole.port) \(ETIMEDOUT)"] && bench.dates == [ms(100)])
            bench.answers.withLock { $0 = [.success([hole6])] }
            Connection.connect(host: "host.test", port: hole.port, on: simulation.loop) {
                $1.count
            } completion: { _ in
                bench.dates.append(simulation.now)
            }
            simulation.advance(by: .seconds(60))
            #expect(bench.dates == [ms(100), ms(31_000)])
        }
    }

    @Test("a look-up that fails, takes too long, or finds nothing is the error")
    func lookups() throws {
        withBench([]) { simulation, bench in
            let failure = HostResolver.LookupError(.unavailable, name: "host.test", reason: "ask again")
            bench.answers.withLock { $0 = [.failure(failure), .success([])] }
            for _ in 0..<2 {
                bench.connect(1)
                simulation.runUntilIdle()
            }
            bench.latency.withLock { $0 = .seconds(10) }
            bench.connect(1, timeout: .seconds(3))
            simulation.runUntilIdle()
            let kinds = bench.errors.map { error -> HostResolver.LookupError.Kind? in
                if case .lookup(let failure) = error { failure.kind } else { nil }
            }
            #expect(kinds == [.unavailable, .notFound, .timedOut])
            #expect(
                bench.errors.map(\.description).prefix(2) == [
                    "look up host.test: ask again", "look up host.test: the name has no address",
                ])
            #expect(bench.dates == [ms(0), ms(0), ms(3_000)])
        }
    }

    @Test("the completion is called in its modes only")
    func modes() throws {
        try withBench([open4]) { simulation, bench in
            try bench.listen(at: open4)
            bench.connect(bench.listener!.address.port!, inModes: "panel")
            simulation.advance(by: .seconds(20))
            #expect(bench.dates.isEmpty)
            #expect(simulation.loop.run(in: "panel") == .finished)
            #expect(bench.dates == [ms(20_000)] && bench.connection?.modes == "panel")
        }
    }

    /// The stage of an attempt at its cancellation.
    enum Stage: CaseIterable, Sendable {
        case begun, lookingUp, firstAddress, twoAddresses, pausing, secondTry
    }

    @Test(
        "a cancelled attempt calls no completion, releases everything, and leaves no socket", arguments: Stage.allCases
    )
    func cancelling(stage: Stage) throws {
        try withBench([hole6, hole4]) { simulation, bench in
            let hole = try BlackHole(hole6)
            let second = try BlackHole(hole4, port: hole.port)
            bench.latency.withLock { $0 = .seconds(1) }
            var retry = Connection.Retry()
            retry.jitter = 0
            let isGone = Flag()
            var token: Token? = Token { isGone.set() }
            let attempt = bench.connect(hole.port, timeout: .seconds(5), retry: retry, keeping: token)
            token = nil
            let (time, open): (Int, Int) =
                switch stage {
                case .begun: (0, 0)
                case .lookingUp: (500, 0)
                case .firstAddress: (1_100, 1)
                case .twoAddresses: (1_300, 2)
                case .pausing: (5_500, 0)
                case .secondTry: (7_300, 2)
                }
            if stage != .begun { simulation.advance(by: .milliseconds(time)) }
            #expect(attempt.isPending && !isGone.isSet)
            #expect(socketsConnecting(to: hole.port) == 2 + open, "looked up at \(bench.questions.withLock { $0 })")
            attempt.cancel()
            attempt.cancel()
            #expect(!attempt.isPending && isGone.isSet)
            #expect(socketsConnecting(to: hole.port) == 2, "the fillers'")
            #expect(simulation.loop.run(in: .default) == .finished, "nothing is left to wait for")
            simulation.advance(by: .seconds(600))
            #expect(bench.dates.isEmpty)
            withExtendedLifetime(second) {}
        }
    }

    @Test("an attempt that has failed at once and is then cancelled calls no completion", arguments: [false, true])
    func cancelledFailure(isCancelled: Bool) throws {
        try withSimulation { simulation in
            var outcomes = 0
            let attempt = try Connection.connect(to: Endpoint("ff02::1", port: 1), on: simulation.loop) {
                $1.count
            } completion: { _ in
                outcomes += 1
            }
            #expect(attempt.isPending && outcomes == 0)
            if isCancelled { attempt.cancel() }
            simulation.advance(by: .zero)
            #expect(outcomes == (isCancelled ? 0 : 1) && !attempt.isPending)
        }
    }

    @Test("to cancel an attempt that has an outcome is harmless, also in its completion")
    func cancelledLate() throws {
        try withBench([open4]) { simulation, bench in
            try bench.listen(at: open4)
            var attempt: ConnectionAttempt?
            var wasPending = true
            attempt = Connection.connect(host: "host.test", port: bench.listener!.address.port!, on: simulation.loop) {
                $1.count
            } completion: { result in
                wasPending = attempt!.isPending
                attempt!.cancel()
                bench.connection = try? result.get()
            }
            simulation.advance(by: .seconds(1))
            attempt?.cancel()
            #expect(!wasPending && bench.connection?.isOpen == true && bench.peer != nil)
        }
    }

    @Test(
        "the end of the loop closes the sockets of an attempt and lets its completion go",
        arguments: [Stage.lookingUp, .firstAddress, .pausing])
    func endOfLoop(stage: Stage) throws {
        let hole = try BlackHole(hole6)
        let isGone = Flag()
        var attempt: ConnectionAttempt?
        withBench([hole6]) { simulation, bench in
            bench.latency.withLock { $0 = .seconds(1) }
            attempt = bench.connect(
                hole.port, timeout: .seconds(5), retry: .init(), keeping: Token { isGone.set() })
            RunLoop.RandomNumbers.source.set({ 0 }, in: simulation.loop.world)
            let times: [Stage: Int] = [.lookingUp: 500, .firstAddress: 1_500, .pausing: 5_500]
            simulation.advance(by: .milliseconds(times[stage]!))
            #expect(attempt?.isPending == true && !isGone.isSet)
            #expect(socketsConnecting(to: hole.port) == (stage == .firstAddress ? 2 : 1))
        }
        #expect(socketsConnecting(to: hole.port) == 1, "the filler's")
        attempt = nil
        #expect(isGone.isSet)
    }
}

extension ConnectingToHostsTests {
    @Suite("Connecting again")
    struct ConnectingAgainTests {
        private func retry(_ change: (inout Connection.Retry) -> Void = { _ in }) -> Connection.Retry {
            var retry = Connection.Retry()
            retry.jitter = 0
            change(&retry)
            return retry
        }

        @Test("delays grow by the factor, from the first one up to the longest one")
        func growth() {
            let retry = retry {
                $0.firstDelay = .milliseconds(100)
                $0.factor = 3
                $0.maximumDelay = .seconds(2)
            }
            let delays = (1...6).map { retry.delay(after: $0, random: 0) }
            #expect(delays == [100, 300, 900, 2_000, 2_000, 2_000].map { .milliseconds($0) })
            #expect(retry.delay(after: .max, random: 0) == .seconds(2))
        }

        @Test(
            "jitter leaves out no more than its part of a delay",
            arguments: [(0.0, 8_000), (0.25, 6_000), (0.5, 4_000), (1.0, 0)])
        func jitter(part: Double, least: Int) {
            let retry = retry {
                $0.firstDelay = .seconds(8)
                $0.jitter = part
            }
            #expect(retry.delay(after: 1, random: 0) == .seconds(8))
            #expect(retry.delay(after: 1, random: 1) == .milliseconds(least))
            #expect(retry.delay(after: 1, random: 0.5) == (.seconds(8) + .milliseconds(least)) / 2)
        }

        @Test("absurd delays are as long as there is")
        func absurd() {
            let retry = retry {
                $0.firstDelay = Duration(attoseconds: .max)
                $0.maximumDelay = Duration(attoseconds: .max)
                $0.factor = .greatestFiniteMagnitude
            }
            #expect(retry.delay(after: 1, random: 0) == .nanoseconds(Int64.max))
            #expect(retry.delay(after: .max, random: 0) == .nanoseconds(Int64.max))
        }

        @Test("the jitter is chosen anew each time, within its bounds")
        func chance() {
            withBench([]) { simulation, _ in
                var random = simulation.loop.randomNumbers
                let numbers = (0..<1_000).map { _ in Double.random(in: 0..<1, using: &random) }
                #expect(numbers.allSatisfy { $0 >= 0 && $0 < 1 } && Set(numbers).count > 900)
            }
        }

        @Test("each try looks the name up anew, after its delay; the last error is reported after the last try")
        func tries() throws {
            try withClosedPort { port in
                withBench([closed4]) { simulation, bench in
                    let numbers = Locked([0.5, 0, 0.9])
                    RunLoop.RandomNumbers.source.set(
                        { UInt64(0x1p53 * numbers.withLock { $0.removeFirst() }) }, in: simulation.loop.world)
                    let failure = HostResolver.LookupError(.notFound, name: "host.test", reason: "not yet")
                    bench.answers.withLock { $0.insert(.failure(failure), at: 0) }
                    let retry = retry {
                        $0.jitter = 1
                        $0.maximumTries = 4
                    }
                    bench.connect(port, retry: retry)
                    simulation.advance(by: .seconds(600))
                    // Delays of 1, 2 and 4 s, less a half, nothing, and nine tenths.
                    #expect(bench.questions.withLock { $0 } == [ms(0), ms(500), ms(2_500), ms(2_900)])
                    #expect(bench.reasons == ["\(closed4):\(port) \(ECONNREFUSED)"])
                    #expect(bench.dates == [ms(2_900)])
                }
            }
        }

        @Test("a try that succeeds is the last one")
        func success() throws {
            try withBench([closed4]) { simulation, bench in
                try bench.listen(at: open4)
                bench.answers.withLock { $0 = [.success([closed4]), .success([closed4]), .success([open4])] }
                bench.connect(bench.listener!.address.port!, retry: retry())
                simulation.advance(by: .seconds(600))
                #expect(bench.peer == bench.listener!.address.description)
                #expect(bench.dates == [ms(3_000)] && bench.errors.isEmpty)
            }
        }

        @Test("the timeout is for each try, and between tries nothing is open")
        func timeoutOfATry() throws {
            try withBench([hole4]) { simulation, bench in
                let hole = try BlackHole(hole4)
                bench.connect(hole.port, timeout: .seconds(2), retry: retry { $0.maximumTries = 2 })
                var open: [Int] = []
                for _ in 0..<5 {
                    open.append(socketsConnecting(to: hole.port) - 1)
                    simulation.advance(by: .milliseconds(1_100))
                }
                // Tries from 0 to 2 s and from 3 to 5 s, observed from 0 to 4.4 s.
                #expect(open == [0, 1, 0, 1, 1])
                #expect(bench.dates == [ms(5_000)] && bench.reasons == ["\(hole4):\(hole.port) \(ETIMEDOUT)"])
            }
        }

        @Test("the total timeout ends a try that is under way")
        func totalTimeout() throws {
            try withBench([hole4]) { simulation, bench in
                let hole = try BlackHole(hole4)
                let retry = retry {
                    $0.totalTimeout = .seconds(4)
                    $0.maximumTries = nil
                }
                bench.connect(hole.port, timeout: .seconds(2), retry: retry)
                simulation.advance(by: .seconds(600))
                #expect(bench.dates == [ms(4_000)] && bench.reasons == ["\(hole4):\(hole.port) \(ETIMEDOUT)"])
                #expect(bench.questions.withLock { $0 } == [ms(0), ms(3_000)])
            }
        }

        @Test("a try that would begin at the total timeout or later is not made, and not waited for")
        func totalTimeoutInADelay() throws {
            try withClosedPort { port in
                withBench([closed4]) { simulation, bench in
                    bench.connect(port, retry: retry { $0.totalTimeout = .seconds(3) })
                    simulation.advance(by: .seconds(600))
                    #expect(bench.questions.withLock { $0 } == [ms(0), ms(1_000)])
                    #expect(bench.dates == [ms(1_000)] && bench.reasons == ["\(closed4):\(port) \(ECONNREFUSED)"])
                }
            }
        }

        @Test("an invalid name is not tried again")
        func invalidName() {
            withBench([]) { simulation, bench in
                var kinds: [HostResolver.LookupError.Kind] = []
                Connection.connect(host: "", port: 1, on: simulation.loop, retry: retry()) {
                    $1.count
                } completion: { result in
                    if case .failure(.lookup(let failure)) = result { kinds.append(failure.kind) }
                }
                #expect(kinds.isEmpty)
                simulation.advance(by: .zero)
                #expect(kinds == [.invalidName])
            }
        }

        @Test("a retry that would never rest or never try is refused with a sentence")
        func preconditions() async {
            let results = [
                await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                    connectAgain { $0.firstDelay = .zero }
                },
                await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                    connectAgain { $0.maximumDelay = .seconds(-1) }
                },
                await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                    connectAgain { $0.factor = .nan }
                },
                await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                    connectAgain { $0.jitter = 1.5 }
                },
                await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                    connectAgain { $0.maximumTries = 0 }
                },
            ]
            for (property, result) in zip(["firstDelay", "maximumDelay", "factor", "jitter", "maximumTries"], results) {
                let isSaid = says("a retry's \(property) is", result)
                #expect(isSaid, "\(property)")
            }
        }
    }
}

private func connectAgain(_ change: (inout Connection.Retry) -> Void) {
    withSimulation { simulation in
        var retry = Connection.Retry()
        change(&retry)
        Connection.connect(host: "127.0.0.1", port: 1, on: simulation.loop, retry: retry) {
            $1.count
        } completion: { _ in
        }
    }
}
