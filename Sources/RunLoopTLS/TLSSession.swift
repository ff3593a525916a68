internal import COpenSSL
internal import Glibc
package import RunLoopKit
public import RunLoopUnix

/// The TLS of a connection: what the handshake has agreed on. It belongs to the connection's thread and is not
/// `Sendable`.
///
/// Read it in ``/RunLoopUnix/Connection/handshakeHandler`` or later; before the handshake it is empty.
public final class TLSSession: Transport {
    // What OpenSSL keeps for the connection; freed with the session.
    private let ssl: OpaquePointer
    private let context: TLSContext

    package private(set) var readAwaits: DescriptorEvents
    package private(set) var writeAwaits = DescriptorEvents.writable
    package private(set) var mayHoldInput = false
    package private(set) var failure: Connection.CloseReason?
    private var isEstablished = false
    private var hasEnded = false

    private init(_ context: TLSContext, _ descriptor: Int32, awaiting: DescriptorEvents) {
        guard let ssl = SSL_new(context.pointer) else { fatalError("no memory is left for a TLS connection") }
        self.ssl = ssl
        self.context = context
        readAwaits = awaiting
        let bio = SocketBIO.make(descriptor)
        SSL_set_bio(ssl, bio, bio)
    }

    /// The server's side.
    convenience init(_ server: TLSServerContext, _ descriptor: Int32) {
        self.init(server.context, descriptor, awaiting: .readable)
        SSL_set_accept_state(ssl)
    }

    /// The client's side, which begins the handshake: it waits until it can write.
    convenience init(_ client: TLSClientContext, _ descriptor: Int32, serverName: String) {
        self.init(client.context, descriptor, awaiting: .writable)
        SSL_set_connect_state(ssl)
        var address = in6_addr()
        let isAddress =
            inet_pton(AF_INET, serverName, &address) == 1 || inet_pton(AF_INET6, serverName, &address) == 1
        // An address is not sent (RFC 6066, section 3).
        let isSet = isAddress || serverName.isEmpty || rlk_ssl_set_server_name(ssl, serverName) == 1
        guard client.verification == .full else { return }
        SSL_set_hostflags(ssl, UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS))
        let isExpected =
            isAddress
            ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), serverName) == 1 : SSL_set1_host(ssl, serverName) == 1
        guard isSet, isExpected, !serverName.isEmpty else {
            fatalError("\"\(serverName)\" cannot be the name of a server: give the one that its certificate is for")
        }
    }

    deinit {
        SSL_free(ssl)
    }

    // MARK: What was agreed on

    /// The version, for example `TLSv1.3`.
    public var version: String { String(cString: SSL_get_version(ssl)) }
    /// The cipher, for example `TLS_AES_256_GCM_SHA384`; `nil` before the handshake is done.
    public var cipher: String? { SSL_get_current_cipher(ssl).map { String(cString: SSL_CIPHER_get_name($0)) } }
    /// The name that the client asked for (SNI); `nil` for none.
    public var serverName: String? {
        SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name).map { String(cString: $0) }
    }
    /// The application protocol (ALPN); `nil` if there is none.
    public var applicationProtocol: String? {
        var name: UnsafePointer<UInt8>?
        var length: UInt32 = 0
        SSL_get0_alpn_selected(ssl, &name, &length)
        return name.map { String(decoding: UnsafeBufferPointer(start: $0, count: Int(length)), as: UTF8.self) }
    }
    /// Whether an earlier session was resumed, which saves most of the handshake.
    public var isResumed: Bool { SSL_session_reused(ssl) == 1 }

    /// The subject of the peer's certificate as in RFC 2253, for example `CN=alice,O=Example`; `nil` if the peer showed
    /// none. Unless the context verifies nothing, the certificate has been verified.
    public var peerSubject: String? {
        guard let certificate = SSL_get0_peer_certificate(ssl) else { return nil }
        let memory = BIO_new(BIO_s_mem())!
        defer { BIO_free(memory) }
        rlk_x509_print_subject(memory, certificate)
        var bytes = [UInt8](repeating: 0, count: Int(BIO_ctrl_pending(memory)))
        BIO_read(memory, &bytes, Int32(bytes.count))
        return String(decoding: bytes, as: UTF8.self)
    }

    // MARK: Transport

    package var handshakeTimeout: Duration { context.handshakeTimeout }

    package func handshake() -> Int {
        ERR_clear_error()
        let result = SSL_do_handshake(ssl)
        guard result == 1 else { return wait(result, \.readAwaits, during: .handshake) }
        isEstablished = true
        readAwaits = .readable
        mayHoldInput = true
        return 0
    }

    /// One record after another, while there is room and may be more: a record has at most 16 KiB.
    package func read(into room: UnsafeMutableRawBufferPointer) -> Int {
        guard failure == nil else { return -Int(EPROTO) }
        readAwaits = .readable
        ERR_clear_error()
        var count = 0
        repeat {
            let result = SSL_read(ssl, room.baseAddress! + count, Int32(clamping: room.count - count))
            guard result > 0 else {
                let status = wait(result, \.readAwaits, during: .transfer)
                // The next call reports an end or an error again.
                mayHoldInput = count > 0 && -status != Int(EAGAIN)
                return count > 0 ? count : status
            }
            count += Int(result)
        } while count < room.count && (SSL_has_pending(ssl) == 1 || SocketBIO.mayHaveMore(SSL_get_rbio(ssl)))
        mayHoldInput = SSL_has_pending(ssl) == 1
        return count
    }

    package func write(_ bytes: UnsafeRawBufferPointer) -> Int {
        guard failure == nil else { return -Int(EPROTO) }
        writeAwaits = .writable
        ERR_clear_error()
        // A peer that reads as fast as this writes must not keep the loop busy.
        let most = min(bytes.count, 256 * 1024)
        var count = 0
        while count < most {
            let result = SSL_write(ssl, bytes.baseAddress! + count, Int32(most - count))
            guard result > 0 else {
                let status = wait(result, \.writeAwaits, during: .transfer)
                return count > 0 ? count : status
            }
            count += Int(result)
        }
        return count
    }

    package func end() -> Int {
        guard isEstablished, failure == nil, !hasEnded else { return 0 }
        ERR_clear_error()
        let result = SSL_shutdown(ssl)
        guard result >= 0 else { return wait(result, \.writeAwaits, during: .transfer) }
        // A second call would wait for the peer.
        hasEnded = true
        return 0
    }

    private enum Phase { case handshake, transfer }

    /// What a call that could not do its work waits for, or why it never will.
    ///
    /// - Returns: `-EAGAIN`, 0 when the peer has ended its side, or `-EPROTO` if ``failure`` says why.
    private func wait(
        _ result: Int32, _ awaits: ReferenceWritableKeyPath<TLSSession, DescriptorEvents>, during phase: Phase
    ) -> Int {
        let number = errno
        switch SSL_get_error(ssl, result) {
        case SSL_ERROR_WANT_READ: self[keyPath: awaits] = .readable
        case SSL_ERROR_WANT_WRITE: self[keyPath: awaits] = .writable
        case SSL_ERROR_ZERO_RETURN: return 0
        case SSL_ERROR_SYSCALL where number != 0 && ERR_peek_last_error() == 0:
            failure = .failed(SystemError(phase == .handshake ? "shake hands" : "go on with TLS", errno: number))
            return -Int(EPROTO)
        default:
            let error = ERR_peek_last_error()
            failure = .tls(
                TLSError(error, isHandshaking: phase == .handshake, verification: SSL_get_verify_result(ssl)))
            return -Int(EPROTO)
        }
        return -Int(EAGAIN)
    }
}
