internal import COpenSSL
internal import Glibc
internal import RunLoopUnix

/// The TLS session of a connection, with the results of the handshake. A session belongs to the connection's thread and
/// is not `Sendable`.
///
/// Read it in ``/RunLoopUnix/Connection/handshakeHandler`` or later; before the handshake it is empty. A session moves
/// with its connection to another loop; drop references to it before.
public final class TLSSession {
    let ssl: OpaquePointer
    let context: TLSContext

    private init(_ context: TLSContext) throws(TLSError) {
        ERR_clear_error()
        guard let ssl = SSL_new(context.pointer) else { throw .configuration("make a TLS session") }
        self.ssl = ssl
        self.context = context
    }

    convenience init(_ server: TLSServerContext) throws(TLSError) {
        try self.init(server.context)
        SSL_set_accept_state(ssl)
    }

    convenience init(_ client: TLSClientContext, serverName: String) throws(TLSError) {
        try self.init(client.context)
        SSL_set_connect_state(ssl)
        if let protocols = client.protocols { SSL_set_alpn_protos(ssl, protocols, UInt32(protocols.count)) }
        let refusal = TLSError(
            .configuration, "\"\(serverName)\" cannot be the name of a server: give the name in its certificate"
        )
        guard !serverName.utf8.contains(0) else { throw refusal }
        var address = in6_addr()
        let isAddress =
            inet_pton(AF_INET, serverName, &address) == 1 || inet_pton(AF_INET6, serverName, &address) == 1
        // Only a name is sent to the server, not an address (RFC 6066, section 3).
        let isSet = isAddress || serverName.isEmpty || rlk_ssl_set_server_name(ssl, serverName) == 1
        guard isSet else { throw refusal }
        guard client.verification == .full else { return }
        SSL_set_hostflags(ssl, UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS))
        let isExpected =
            isAddress
            ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), serverName) == 1 : SSL_set1_host(ssl, serverName) == 1
        guard isExpected, !serverName.isEmpty else { throw refusal }
    }

    deinit {
        SSL_free(ssl)
    }

    /// The TLS version, for example `TLSv1.3`.
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
    /// A Boolean value that indicates whether an earlier session was resumed, which saves most of the handshake.
    public var isResumed: Bool { SSL_session_reused(ssl) == 1 }

    /// The subject of the peer's certificate as in RFC 2253, for example `CN=alice,O=Example`; `nil` if the peer showed
    /// none. The certificate has been verified, except under a context that verifies nothing.
    public var peerSubject: String? {
        guard let certificate = SSL_get0_peer_certificate(ssl) else { return nil }
        let memory = BIO_new(BIO_s_mem())!
        defer { BIO_free(memory) }
        rlk_x509_print_subject(memory, certificate)
        var bytes = [UInt8](repeating: 0, count: Int(BIO_ctrl_pending(memory)))
        assert(!bytes.isEmpty, "the subject of a certificate has no text")
        BIO_read(memory, &bytes, Int32(bytes.count))
        return String(decoding: bytes, as: UTF8.self)
    }
}

@available(*, unavailable, message: "a session belongs to its connection's thread")
extension TLSSession: Sendable {}
