import COpenSSL
import Glibc
import TestSupport

@testable import RunLoopTLS
@_spi(Ports) @testable import RunLoopUnix

/// The far side of a conversation: a thread's plain descriptors, and OpenSSL by itself.
final class StormPeer {
    private enum Moved {
        case bytes(Int)
        case nothing, end, failure
    }

    private let plan: Plan
    private let meeting: Meeting
    private var random: SeededGenerator
    private var input: Int32 = -1
    private var output: Int32 = -1
    private var ssl: OpaquePointer?
    private var sent = 0
    /// The number of bytes that the peer has tried to send.
    private var offered = 0
    private var hasActed = false
    private var received = 0
    private var room = [UInt8](repeating: 0, count: 32 * 1024)

    /// Holds a conversation from its beginning to its end.
    static func converse(_ plan: Plan, _ meeting: Meeting) {
        let peer = StormPeer(plan, meeting)
        peer.meet()
        if peer.input >= 0 { peer.talk() }
        peer.close()
    }

    private init(_ plan: Plan, _ meeting: Meeting) {
        self.plan = plan
        self.meeting = meeting
        random = SeededGenerator(seed: plan.seed)
    }

    private func fail(_ what: String) {
        meeting.failures.append("\(plan): \(what) (sent \(sent), received \(received))")
    }

    // MARK: The beginning

    private func meet() {
        switch plan.way {
        case .pair:
            let (own, other) = makeSockets()
            (input, output) = (own, own)
            meeting.give(plan, ProgramSide(input: other, output: other))
        case .pipes:
            var (there, back): ([Int32], [Int32]) = ([-1, -1], [-1, -1])
            precondition(pipe(&there) == 0 && pipe(&back) == 0)
            (input, output) = (back[0], there[1])
            meeting.give(plan, ProgramSide(input: there[0], output: back[1]))
        case .connected, .tlsConnected: accept()
        case .tcp, .unix, .tls, .framed, .relay, .tlsRelay: connect(to: meeting.addresses[plan.way]![plan.isPolite]!)
        }
        for descriptor in [input, output] where descriptor >= 0 { _ = fcntl(descriptor, F_SETFL, O_NONBLOCK) }
        guard input >= 0, plan.way.isTLS else { return }
        let isServer = plan.way == .tlsConnected
        ssl = SSL_new(isServer ? meeting.server.context.pointer : meeting.client.context.pointer)
        if isServer { SSL_set_accept_state(ssl) } else { SSL_set_connect_state(ssl) }
    }

    private func accept() {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        precondition(listen(listener, 1) == 0)
        let address = Endpoint { precondition(getsockname(listener, $0, &$1) == 0) }
        meeting.call(plan, try! Endpoint("127.0.0.1", port: address.port!))
        var interest = pollfd(fd: listener, events: Int16(POLLIN), revents: 0)
        for _ in 0..<600 where input < 0 && !meeting.isOver.isSet {
            if poll(&interest, 1, 100) > 0 { input = Glibc.accept(listener, nil, nil) }
        }
        output = input
        if input < 0 && !meeting.isOver.isSet { fail("nobody has connected") }
        Glibc.close(listener)
    }

    private func connect(to address: Endpoint) {
        let socket = socket(address.family, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        let status = address.withSystemAddress { Glibc.connect(socket, $0, $1) }
        guard status == 0 else {
            if !meeting.isOver.isSet { fail("cannot connect (errno \(errno))") }
            Glibc.close(socket)
            return
        }
        (input, output) = (socket, socket)
    }

    private func close() {
        if input >= 0 { Glibc.close(input) }
        if output >= 0 && output != input { Glibc.close(output) }
        if let ssl { SSL_free(ssl) }
    }

    // MARK: Bytes

    private func moved(_ count: Int) -> Moved {
        if count > 0 { return .bytes(count) }
        if count == 0 { return .end }
        return errno == EAGAIN ? .nothing : .failure
    }

    private func movedByTLS(_ result: Int32) -> Moved {
        switch SSL_get_error(ssl, result) {
        case SSL_ERROR_NONE: .bytes(Int(result))
        case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE: .nothing
        case SSL_ERROR_ZERO_RETURN: .end
        default: .failure
        }
    }

    private func write(_ bytes: ArraySlice<UInt8>) -> Moved {
        bytes.withUnsafeBytes { bytes in
            if let ssl { return movedByTLS(SSL_write(ssl, bytes.baseAddress, Int32(bytes.count))) }
            return moved(Glibc.write(output, bytes.baseAddress, bytes.count))
        }
    }

    private func read() -> Moved {
        if let ssl { return movedByTLS(SSL_read(ssl, &room, Int32(room.count))) }
        return moved(Glibc.read(input, &room, room.count))
    }

    private func writeRaw(_ bytes: some Sequence<UInt8>) {
        let bytes = Array(bytes)
        _ = Glibc.write(output, bytes, bytes.count)
    }

    private func someBytes(_ count: Int) -> [UInt8] {
        (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
    }

    private func rest(_ milliseconds: ClosedRange<Int>) {
        usleep(UInt32(Int.random(in: milliseconds, using: &random)) * 1_000)
    }

    // MARK: The conversation

    private func talk() {
        if plan.manner == .noHandshake {
            writeRaw(someBytes(Int.random(in: 1...300, using: &random)))
            return rest(0...5)
        }
        if plan.manner == .brokenHandshake { return breakHandshake() }
        if let ssl { SSL_set_fd(ssl, input) }
        let clock = ContinuousClock()
        let end = clock.now + .seconds(200)
        while true {
            guard clock.now < end else { return fail("it hangs") }
            var hasMoved = false
            if sent < plan.peerTurn {
                // After OpenSSL had no room, it wants the same bytes again.
                if offered == sent {
                    offered = min(plan.peerTurn, sent + Int.random(in: 1...plan.piece, using: &random))
                }
                switch write(plan.stream[sent..<offered]) {
                case .bytes(let count):
                    (sent, hasMoved) = (sent + count, true)
                    offered = sent
                case .nothing: break
                case .end, .failure: return finish(hasBeenEnded: false)
                }
            } else if !hasActed {
                hasActed = true
                guard act() else { return }
            }
            switch read() {
            case .bytes(let count):
                hasMoved = true
                guard check(count) else { return }
            case .nothing: break
            case .end: return finish(hasBeenEnded: true)
            case .failure: return finish(hasBeenEnded: false)
            }
            if Int.random(in: 0..<200, using: &random) == 0 { rest(1...20) }
            if !hasMoved { wait() }
        }
    }

    private func wait() {
        var interests = [
            pollfd(fd: input, events: Int16(POLLIN), revents: 0),
            pollfd(fd: sent < plan.peerTurn ? output : -1, events: Int16(POLLOUT), revents: 0),
        ]
        poll(&interests, 2, 20)
    }

    /// Acts in this peer's manner.
    ///
    /// - Returns: `true` if the conversation continues.
    private func act() -> Bool {
        switch plan.manner {
        case .polite:
            if let ssl {
                // Once more if there is no room. If the program has gone, reading reports it.
                let result = SSL_shutdown(ssl)
                hasActed = result >= 0 || SSL_get_error(ssl, result) != SSL_ERROR_WANT_WRITE
                ERR_clear_error()
            } else if plan.way == .pipes {
                Glibc.close(output)
                output = -1
            } else {
                shutdown(output, Int32(SHUT_WR))
            }
            return true
        case .cut: return false
        case .reset:
            var linger = linger(l_onoff: 1, l_linger: 0)
            setsockopt(output, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout.size(ofValue: linger)))
            return false
        case .stall:
            rest(50...200)
            return false
        case .garbage:
            writeRaw(someBytes(Int.random(in: 1...500, using: &random)))
            // The bytes may look like the beginning of a long record.
            shutdown(output, Int32(SHUT_WR))
            return true
        case .brokenRecord:
            writeRaw(([23, 3, 3, 0x20, 0] + someBytes(100)).prefix(Int.random(in: 1...105, using: &random)))
            return false
        case .brokenHandshake, .noHandshake: return false
        }
    }

    /// Sends a part of the first message of a handshake.
    private func breakHandshake() {
        let memory = BIO_new(BIO_s_mem())!
        SSL_set_bio(ssl, BIO_new(BIO_s_mem()), memory)
        SSL_do_handshake(ssl)
        ERR_clear_error()
        let count = Int(BIO_read(memory, &room, Int32(room.count)))
        if count > 0 { writeRaw(room.prefix(Int.random(in: 0..<count, using: &random))) }
        if Bool.random(using: &random) { rest(0...20) }
    }

    /// Returns `true` if the received bytes are the expected ones.
    private func check(_ count: Int) -> Bool {
        if plan.conduct == .flooding { return true }
        let end = received + count
        guard end <= sent, room[..<count] == plan.stream[received..<end] else {
            fail("\(count) bytes are not the answer")
            return false
        }
        received = end
        return true
    }

    /// Finishes after the program has ended its side, or has gone.
    private func finish(hasBeenEnded: Bool) {
        guard plan.isPolite, !meeting.isOver.isSet else { return }
        if !hasBeenEnded || received != plan.stream.count { fail("cut off; in order: \(hasBeenEnded)") }
    }
}
