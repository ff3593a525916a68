internal import COpenSSL
@_spi(Ports) internal import RunLoopCore
internal import RunLoopKit
@_spi(Ports) public import RunLoopUnix

/// A stream that speaks TLS over a lower stream. Reads at most 64 KiB from the lower stream per readiness event, passes
/// on all bytes that it decrypts, and then holds at most an incomplete record.
final class TLSStream: ByteStream {
    private enum Stage {
        case handshake, open
        /// The peer has been notified of the end of the output.
        case ended
    }

    fileprivate let below: any ByteStream
    /// The number of bytes that may still be read from the lower stream for the current event.
    private var allowance = 0
    let session: TLSSession
    var owner: (any StreamOwner)?
    private var isWatched = false
    private var handshakeTimeout: DelayedCall?
    private static let timeoutLabel = CallLabel("handshake timeout")

    private(set) var failure: (any StreamFailure)?
    private var stage = Stage.handshake
    /// The events of the lower stream that the handshake or reading waits for; reading may have to send bytes first.
    private var readAwaits: DescriptorEvents
    /// The events of the lower stream that writing waits for.
    private var writeAwaits = DescriptorEvents.writable
    /// True after reading has failed. Reading continues after a failed write, because the peer may have sent bytes
    /// before it closed.
    private var hasReadFailed = false

    var interest: DescriptorEvents = [] {
        didSet { updateBelow() }
    }

    /// Creates a stream. A client begins the handshake, so it first waits until it can write.
    init(_ session: TLSSession, over below: any ByteStream) {
        self.session = session
        self.below = below
        readAwaits = SSL_is_server(session.ssl) == 1 ? .readable : .writable
        assert(SSL_get_rbio(session.ssl) == nil, "a session is used by two streams")
        let bio = StreamBIO.make(self)
        SSL_set_bio(session.ssl, bio, bio)
    }

    /// True once the handshake is done.
    var isOpen: Bool { stage != .handshake }
    var fileDescriptor: Int32 { below.fileDescriptor }
    var name: String? {
        get { below.name }
        set { below.name = newValue }
    }

    func open(
        on loop: RunLoop, inModes modes: RunLoop.Modes, origin: RunLoop.Origin, interest: DescriptorEvents
    ) throws(DescriptorError) {
        assert(!isWatched && owner != nil, "a stream is opened twice, or by nobody")
        below.owner = self
        try below.open(on: loop, inModes: modes, origin: origin, interest: readAwaits)
        isWatched = true
        self.interest = interest
        guard !isOpen else { return }
        if loop.world.isRepeatable { session.makeRepeatable(on: loop) }
        let timeout = session.context.handshakeTimeout
        let end = loop.now + timeout
        handshakeTimeout = loop.perform(at: end, inModes: modes, label: Self.timeoutLabel, origin: origin) {
            [unowned self] in
            failure = TLSError(.handshakeTimeout, "not finished within \(timeout)")
            self.owner?.streamFailed()
        }
    }

    private func updateBelow() {
        guard isWatched else { return }
        guard isOpen else { return below.interest = readAwaits }
        var events: DescriptorEvents = []
        if interest.contains(.readable) { events.formUnion(readAwaits) }
        if interest.contains(.writable) { events.formUnion(writeAwaits) }
        below.interest = events
    }

    // MARK: Handshake

    private func shakeHands() {
        assert(!isOpen && isWatched, "a handshake goes on after its end, or in a closed stream")
        ERR_clear_error()
        let result = SSL_do_handshake(session.ssl)
        guard result == 1 else {
            if outcome(of: result, \.readAwaits) == .mustWait { updateBelow() } else { owner?.streamFailed() }
            return
        }
        stage = .open
        handshakeTimeout?.cancel()
        // Bytes that arrived with the end of the handshake have been read from the lower stream already.
        (readAwaits, holdsInput) = (.readable, true)
        owner?.streamOpened()
        if interest.contains(.readable) { owner?.streamIsReady(for: .readable) }
        updateBelow()
    }

    // MARK: Bytes

    private(set) var holdsInput = false

    /// Decrypts records while there is room and input.
    func read(into room: UnsafeMutableRawBufferPointer) -> StreamResult {
        assert(isOpen && room.count > 0, "a stream is read before its handshake, or into no room")
        holdsInput = false
        guard !hasReadFailed else { return .failed }
        readAwaits = .readable
        ERR_clear_error()
        var count = 0
        repeat {
            let result = SSL_read(session.ssl, room.baseAddress! + count, Int32(clamping: room.count - count))
            guard result > 0 else {
                let outcome = outcome(of: result, \.readAwaits)
                if outcome == .failed { hasReadFailed = true }
                guard count > 0 else { return outcome }
                // The next call reports the end again.
                holdsInput = outcome != .mustWait
                return .done(count)
            }
            assert(Int(result) <= room.count - count, "more was decrypted than there is room for")
            count += Int(result)
        } while count < room.count && (allowance > 0 || SSL_has_pending(session.ssl) == 1)
        holdsInput = count == room.count
        return .done(count)
    }

    /// Reads as many bytes from the lower stream as are allowed. A read that does not fill its room has emptied the
    /// lower stream, which reports further input.
    fileprivate func readBelow(into room: UnsafeMutableRawBufferPointer) -> StreamResult {
        guard allowance > 0 else { return .mustWait }
        let room = UnsafeMutableRawBufferPointer(rebasing: room.prefix(allowance))
        let result = below.read(into: room)
        assert(room.count > 0, "OpenSSL reads into no room")
        if case .done(let count) = result, count == room.count { allowance -= count } else { allowance = 0 }
        return result
    }

    func holdForAnswer() -> (any TimeHold)? { below.holdForAnswer() }

    func write(gathering pieces: UnsafeBufferPointer<UnsafeRawBufferPointer>) -> StreamResult {
        guard let first = pieces.first(where: { !$0.isEmpty }) else { return .done(0) }
        guard first.count < Self.recordSize else { return write(first) }
        // A separate record for each piece would cost a system call each.
        return withUnsafeTemporaryAllocation(byteCount: Self.recordSize, alignment: 1) { record in
            var count = 0
            for piece in pieces where count < record.count {
                let part = UnsafeRawBufferPointer(rebasing: piece.prefix(record.count - count))
                assert(count + part.count <= record.count, "a piece goes beyond its record")
                UnsafeMutableRawBufferPointer(rebasing: record[count...]).copyMemory(from: part)
                count += part.count
            }
            return write(UnsafeRawBufferPointer(rebasing: record[..<count]))
        }
    }

    private static let recordSize = 16 * 1024

    func write(_ bytes: UnsafeRawBufferPointer) -> StreamResult {
        assert(stage == .open, "a stream is written before its handshake, or after its end")
        guard failure == nil else { return .failed }
        writeAwaits = .writable
        ERR_clear_error()
        // A peer that reads as fast as this stream writes must not keep the loop busy.
        let most = min(bytes.count, 256 * 1024)
        var count = 0
        while count < most {
            let result = SSL_write(session.ssl, bytes.baseAddress! + count, Int32(most - count))
            guard result > 0 else {
                let outcome = outcome(of: result, \.writeAwaits)
                return count > 0 && outcome == .mustWait ? .done(count) : outcome
            }
            assert(Int(result) <= most - count, "more was encrypted than there was")
            count += Int(result)
        }
        return .done(count)
    }

    /// Returns the result of an unsuccessful OpenSSL call, and notes the events to wait for, or the failure.
    private func outcome(
        of result: Int32, _ awaits: ReferenceWritableKeyPath<TLSStream, DescriptorEvents>
    ) -> StreamResult {
        assert(result <= 0, "a call of OpenSSL has not failed")
        switch SSL_get_error(session.ssl, result) {
        case SSL_ERROR_WANT_READ:
            self[keyPath: awaits] = .readable
            return .mustWait
        case SSL_ERROR_WANT_WRITE:
            self[keyPath: awaits] = .writable
            return .mustWait
        case SSL_ERROR_ZERO_RETURN: return .ended
        case SSL_ERROR_SYSCALL where below.failure != nil: failure = below.failure
        default:
            let error = ERR_peek_last_error()
            failure = TLSError(error, isHandshaking: !isOpen, verification: SSL_get_verify_result(session.ssl))
        }
        return .failed
    }

    // MARK: Ends

    func endWriting() -> StreamResult {
        if stage == .open && failure == nil {
            ERR_clear_error()
            let result = SSL_shutdown(session.ssl)
            guard result >= 0 else { return outcome(of: result, \.writeAwaits) }
            // A second call would wait for the peer.
            stage = .ended
        }
        return below.endWriting()
    }

    /// Returns `true` once the peer has been notified of the end.
    func mayClose(peerHasEnded: Bool) -> Bool { stage == .ended && below.mayClose(peerHasEnded: false) }
    var unsentOutput: Int { below.unsentOutput }

    func leave() {
        assert(isWatched, "a stream leaves a loop that it is not in")
        (owner, isWatched) = (nil, false)
        handshakeTimeout?.cancel()
        handshakeTimeout = nil
        below.leave()
    }

    func close(_ ending: StreamEnding) {
        if ending == .complete && stage == .open && failure == nil {
            ERR_clear_error()
            SSL_shutdown(session.ssl)
        }
        (owner, isWatched) = (nil, false)
        handshakeTimeout?.cancel()
        below.close(ending)
    }
}

extension TLSStream: StreamOwner {
    func streamOpened() {
        updateBelow()
    }

    func streamIsReady(for events: DescriptorEvents) {
        if events.contains(.readable) { allowance = 64 * 1024 }
        guard isOpen else { return shakeHands() }
        var ready: DescriptorEvents = []
        if interest.contains(.readable), !events.isDisjoint(with: readAwaits) { ready.insert(.readable) }
        if interest.contains(.writable), !events.isDisjoint(with: writeAwaits) { ready.insert(.writable) }
        owner?.streamIsReady(for: ready)
        updateBelow()
    }

    func streamFailed() {
        failure = below.failure
        owner?.streamFailed()
    }

    func streamLostItsLoop() {
        owner?.streamLostItsLoop()
    }
}

/// The BIO through which OpenSSL reads and writes the stream beneath TLS.
private enum StreamBIO {
    // Unsafe, because it is a pointer: it is set up once, and only read after that.
    private nonisolated(unsafe) static let method: OpaquePointer = {
        let type = BIO_get_new_index() | BIO_TYPE_SOURCE_SINK
        let method = BIO_meth_new(type, "byte stream")!
        BIO_meth_set_read(method, receive)
        BIO_meth_set_write(method, transmit)
        BIO_meth_set_ctrl(method, control)
        return method
    }()

    /// Makes a BIO for a stream, which must outlive it.
    static func make(_ stream: TLSStream) -> OpaquePointer {
        let bio = BIO_new(method)!
        assert(BIO_get_data(bio) == nil, "a stream has the memory of another")
        BIO_set_data(bio, Unmanaged.passUnretained(stream).toOpaque())
        BIO_set_init(bio, 1)
        return bio
    }

    private static func stream(of bio: OpaquePointer?) -> Unmanaged<TLSStream> {
        assert(BIO_get_data(bio) != nil, "OpenSSL uses a stream that was not made here")
        return Unmanaged.fromOpaque(BIO_get_data(bio))
    }

    private static let receive: @convention(c) (OpaquePointer?, UnsafeMutablePointer<CChar>?, Int32) -> Int32 = {
        BIO_clear_flags($0, retryFlags)
        let room = UnsafeMutableRawBufferPointer(start: $1, count: Int($2))
        switch stream(of: $0)._withUnsafeGuaranteedRef({ $0.readBelow(into: room) }) {
        case .done(let count):
            assert(
                count > 0 && count <= room.count, "the lower stream has read nothing, or more than there is room for")
            return Int32(count)
        case .mustWait: BIO_set_flags($0, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY)
        case .ended:
            BIO_set_flags($0, BIO_FLAGS_IN_EOF)
            return 0
        case .failed: break
        }
        return -1
    }

    private static let transmit: @convention(c) (OpaquePointer?, UnsafePointer<CChar>?, Int32) -> Int32 = {
        BIO_clear_flags($0, retryFlags)
        let bytes = UnsafeRawBufferPointer(start: $1, count: Int($2))
        switch stream(of: $0)._withUnsafeGuaranteedRef({ $0.below.write(bytes) }) {
        case .done(let count):
            assert(count <= bytes.count, "the lower stream has written more than there was")
            return Int32(count)
        case .mustWait: BIO_set_flags($0, BIO_FLAGS_WRITE | BIO_FLAGS_SHOULD_RETRY)
        case .ended, .failed: break
        }
        return -1
    }

    private static let retryFlags = BIO_FLAGS_READ | BIO_FLAGS_WRITE | BIO_FLAGS_SHOULD_RETRY

    private static let control: @convention(c) (OpaquePointer?, Int32, Int, UnsafeMutableRawPointer?) -> Int = {
        bio, command, _, _ in
        switch command {
        case BIO_CTRL_FLUSH: 1
        case BIO_CTRL_EOF: BIO_test_flags(bio, BIO_FLAGS_IN_EOF) == 0 ? 0 : 1
        default: 0
        }
    }
}

extension TLSServerContext {
    /// Returns a stream that speaks TLS over another stream, as the server.
    @_spi(Ports) public func stream(over below: any ByteStream) throws(TLSError) -> any ByteStream {
        TLSStream(try TLSSession(self), over: below)
    }
}

extension TLSClientContext {
    /// Returns a stream that speaks TLS over another stream, as a client of the named server.
    @_spi(Ports) public func stream(over below: any ByteStream, serverName: String) throws(TLSError) -> any ByteStream {
        TLSStream(try TLSSession(self, serverName: serverName), over: below)
    }
}

@_spi(Ports) extension ByteStream {
    /// The TLS session of the stream; `nil` if it does not speak TLS.
    public var tls: TLSSession? { (self as? TLSStream)?.session }
}
