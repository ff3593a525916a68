import Glibc
import RunLoopKit
import RunLoopTLS
import TLSTestSupport
import TestSupport

@testable import RunLoopUnix

/// The error with which a connection fails on purpose.
struct OnPurpose: Error, Hashable {}

/// The program's side of a storm, which listens, connects, relays, and keeps no connection.
final class Program {
    /// The record of a connection or a relay.
    private final class Life {
        let what: String
        var ends = 0
        init(_ what: String) { self.what = what }
    }

    private let plans: [Plan]
    private let failures: Log<String>
    private let loop: RunLoop
    private let contexts: Contexts
    private var random: SeededGenerator
    private var lives: [Life] = []
    private var objects: [(String, Weak<AnyObject>)] = []
    private(set) var addresses: [Plan.Way: [Bool: Endpoint]] = [:]

    init(_ plans: [Plan], seed: UInt64, contexts: Contexts, failures: Log<String>, on loop: RunLoop) throws {
        self.plans = plans
        self.contexts = contexts
        self.failures = failures
        self.loop = loop
        random = SeededGenerator(seed: seed)
        for way in [Plan.Way.tcp, .unix, .tls, .framed, .relay, .tlsRelay] {
            for isPolite in [true, false] { try listen(way, isPolite) }
        }
    }

    /// The number of connections and relays that have not ended.
    var open: Int { lives.count { $0.ends == 0 } }

    /// Reports lives that have not ended exactly once, and remaining objects. Call this method when all should have
    /// ended.
    func checkEnds() {
        for life in lives where life.ends != 1 { failures.append("\(life.what) has ended \(life.ends) times") }
        for (what, object) in objects where !object.isGone { failures.append("\(what) is still there") }
    }

    // MARK: The beginning

    private func listen(_ way: Plan.Way, _ isPolite: Bool) throws {
        let address =
            way == .unix
            ? try Endpoint(path: "@rlk-storm-\(getpid())-\(isPolite)") : try Endpoint("127.0.0.1", port: 0)
        let listener = try Listener(address: address, on: loop) { [unowned self] _, descriptor, _ in
            do {
                switch way {
                case .relay:
                    relay(Connection(adopting: descriptor, on: loop) { $1.count }, isPolite)
                case .tlsRelay:
                    relay(try Connection(adopting: descriptor, on: loop, tls: contexts.server) { $1.count }, isPolite)
                default: begin(way, isPolite, nil) { try connection(way, descriptor, isPolite, $0) }
                }
            } catch {
                failures.append("\(way): \(error)")
            }
        }
        addresses[way, default: [:]][isPolite] = listener.address
    }

    /// Takes part in a conversation that no peer begins by connecting.
    func take(_ plan: Plan, _ side: ProgramSide) {
        let descriptors = side.take()
        begin(plan.way, plan.isPolite, plan) { handler in
            Connection(
                adoptingInput: descriptors.input, output: descriptors.output, on: loop, limits: limits(plan.isPolite),
                receive: handler)
        }
    }

    /// Connects to a peer.
    func connect(_ plan: Plan, to address: Endpoint) {
        let speaker = speaker(plan.way, plan)
        let completion = { [unowned self] (result: Result<Connection, SystemError>) in
            switch result {
            case .success(let connection): start(connection, speaker, plan.isPolite, "\(plan)")
            case .failure(let error):
                // The connection may have been reset already.
                if plan.isPolite { failures.append("\(plan): \(error)") }
            }
        }
        guard plan.way == .tlsConnected else {
            Connection.connect(
                to: address, on: loop, limits: limits(plan.isPolite), receive: speaker.receive, completion: completion)
            return
        }
        do {
            try Connection.connect(
                to: address, on: loop, limits: limits(plan.isPolite), tls: contexts.client, serverName: "localhost",
                receive: speaker.receive, completion: completion)
        } catch {
            failures.append("\(plan): \(error)")
        }
    }

    private func relay(_ first: Connection, _ isPolite: Bool) {
        Connection.connect(to: addresses[.tcp]![true]!, on: loop) {
            $1.count
        } completion: { [unowned self] result in
            guard case .success(let second) = result else { return failures.append("the relay has nobody to go to") }
            let life = Life("a relay")
            lives.append(life)
            let timeout: Duration? = isPolite || Bool.random(using: &random) ? nil : .milliseconds(50)
            let relay = Relay(between: first, and: second, idleTimeout: timeout) { [unowned self] relay, _ in
                life.ends += 1
                if relay.isOpen { failures.append("a relay is open after its end") }
            }
            for object in [relay, first, second] as [AnyObject] { objects.append((life.what, Weak(object))) }
        }
    }

    private func connection(
        _ way: Plan.Way, _ descriptor: Int32, _ isPolite: Bool, _ handler: @escaping Connection.ReceiveHandler
    ) throws -> Connection {
        guard way == .tls else {
            return Connection(adopting: descriptor, on: loop, limits: limits(isPolite), receive: handler)
        }
        return try Connection(
            adopting: descriptor, on: loop, limits: limits(isPolite), tls: contexts.server, receive: handler)
    }

    private func limits(_ isPolite: Bool) -> Connection.Limits {
        var limits = Connection.Limits()
        func chance(_ of: Int) -> Bool { Int.random(in: 0..<of, using: &random) == 0 }
        if chance(2) {
            limits.highWatermark = Int.random(in: 0...100_000, using: &random)
            limits.lowWatermark = Int.random(in: 0...limits.highWatermark, using: &random)
        }
        guard !isPolite else { return limits }
        limits.readsWhileFull = chance(2)
        if chance(3) { limits.idleTimeout = .milliseconds(Int.random(in: 1...100, using: &random)) }
        if chance(4) { limits.totalTimeout = .milliseconds(Int.random(in: 1...200, using: &random)) }
        if chance(3) { limits.maximumOutput = Int.random(in: 0...500_000, using: &random) }
        if chance(5) { limits.maximumInput = Int.random(in: 0...1_000, using: &random) }
        return limits
    }

    private func speaker(_ way: Plan.Way, _ plan: Plan?) -> Speaker {
        Speaker(way, plan, plans, SeededGenerator(seed: random.next()), failures, on: loop)
    }

    private func begin(
        _ way: Plan.Way, _ isPolite: Bool, _ plan: Plan?,
        _ make: (@escaping Connection.ReceiveHandler) throws -> Connection
    ) {
        let speaker = speaker(way, plan)
        let handler = way == .framed ? Framing.lengthPrefixed(width: 2, speaker.receiveMessage) : speaker.receive
        do {
            start(try make(handler), speaker, isPolite, plan.map { "\($0)" } ?? "\(way)")
        } catch {
            failures.append("\(way): \(error)")
        }
    }

    private func start(_ connection: Connection, _ speaker: Speaker, _ isPolite: Bool, _ what: String) {
        let life = Life(what)
        lives.append(life)
        objects.append((what, Weak(connection)))
        objects.append((what, Weak(speaker)))
        speaker.attend(connection)
        connection.closeHandler = { connection, _ in
            life.ends += 1
            speaker.hasClosed(connection)
        }
        if !isPolite && Int.random(in: 0..<10, using: &random) == 0 { connection.handshakeHandler = { $0.close() } }
        do {
            try connection.start()
        } catch {
            failures.append("\(what): \(error)")
        }
    }
}

/// The program's handling of one connection's input.
private final class Speaker {
    private let way: Plan.Way
    private var plan: Plan?
    private let plans: [Plan]
    private var random: SeededGenerator
    private let failures: Log<String>
    private let loop: RunLoop
    /// The number of bytes of the plan's stream that have arrived.
    private var seen = 0
    private var isClosed = false
    private var isPaused = false

    init(
        _ way: Plan.Way, _ plan: Plan?, _ plans: [Plan], _ random: SeededGenerator, _ failures: Log<String>,
        on loop: RunLoop
    ) {
        self.way = way
        self.plan = plan
        self.plans = plans
        self.random = random
        self.failures = failures
        self.loop = loop
    }

    private func fail(_ what: String) {
        failures.append("\(plan.map { "\($0)" } ?? "\(way)"): \(what), after \(seen) bytes")
    }

    private func checkOpen(_ handler: String) {
        if isClosed { fail("the \(handler) handler is called after the last one") }
    }

    // MARK: Handlers

    func attend(_ connection: Connection) {
        connection.fullHandler = { [self] in
            checkOpen("full")
            if plan?.conduct == .closingWhenFull { $0.close() }
        }
        connection.drainHandler = { [self] in
            checkOpen("drain")
            if plan?.conduct == .closingWhenDrained { $0.close() }
        }
        guard Bool.random(using: &random) || plan?.conduct == .closingAtEnd else { return }
        connection.endHandler = { [self] in
            checkOpen("end")
            if plan?.conduct == .closingAtEnd { $0.close() } else { $0.finishWriting() }
        }
    }

    func hasClosed(_ connection: Connection) {
        if isClosed { fail("closed twice") }
        if connection.isOpen { fail("open when it has been closed") }
        isClosed = true
        connection.write("to nobody")
        connection.close()
    }

    func receive(_ connection: Connection, _ bytes: Span<UInt8>) -> Int {
        checkOpen("receive")
        if isPaused { fail("given something while it is paused") }
        if plan == nil {
            guard bytes.count >= Plan.numberSize else { return 0 }
            find(bytes)
        }
        var used = bytes.count
        if Int.random(in: 0..<8, using: &random) == 0 {
            used = Int.random(in: 1...bytes.count, using: &random)
            if used < bytes.count { connection.receiveAgain() }
        }
        take(bytes.extracting(0..<used))
        answer(connection, bytes.extracting(0..<used))
        return used
    }

    func receiveMessage(_ connection: Connection, _ message: Span<UInt8>) {
        checkOpen("message")
        if isPaused { fail("given a message while it is paused") }
        if plan == nil { find(message) }
        let head = [UInt8(message.count >> 8), UInt8(message.count & 255)]
        take(head.span)
        take(message)
        connection.write(head)
        answer(connection, message)
    }

    /// Finds the conversation by its first bytes.
    private func find(_ bytes: Span<UInt8>) {
        let number = (0..<Plan.numberSize).reduce(0) { $0 << 8 | Int(bytes[$1]) }
        guard plans.indices.contains(number) else { return fail("bytes that nobody has sent") }
        plan = plans[number]
    }

    /// Checks bytes against the peer's.
    private func take(_ bytes: Span<UInt8>) {
        guard let plan else { return }
        let end = seen + bytes.count
        let isRight =
            end <= plan.stream.count
            && bytes.withUnsafeBufferPointer { $0.elementsEqual(plan.stream[seen..<end]) }
        if !isRight { fail("\(bytes.count) bytes are not what was sent") }
        seen = end
    }

    private func answer(_ connection: Connection, _ bytes: Span<UInt8>) {
        guard let plan else { return }
        let isTurn = seen >= plan.programTurn
        switch plan.conduct {
        case .closing where isTurn: connection.close()
        case .failing where isTurn: connection.fail(OnPurpose())
        case .finishing where isTurn: connection.finish(within: .milliseconds(100))
        case .finishingWriting where isTurn: connection.finishWriting()
        case .flooding: connection.write([UInt8](repeating: 90, count: 50_000))
        case .pausing:
            connection.write(bytes)
            if Int.random(in: 0..<4, using: &random) == 0 { pause(connection) }
        default: connection.write(bytes)
        }
    }

    private func pause(_ connection: Connection) {
        isPaused = true
        connection.pauseReading()
        // Some pauses outlast their connection, and must not keep its resources.
        let most = Int.random(in: 0..<50, using: &random) == 0 ? 200_000 : 5_000
        let delay = Duration.microseconds(Int.random(in: 0...most, using: &random))
        loop.perform(afterDelay: delay) { [weak self, weak connection] in
            self?.isPaused = false
            connection?.resumeReading()
        }
    }
}
