internal import COpenSSL
internal import Glibc

/// A version of TLS. Versions before 1.2 must no longer be used (RFC 8996) and cannot be chosen.
public enum TLSVersion: Sendable, Hashable {
    /// TLS 1.2 (RFC 5246).
    case tls12
    /// TLS 1.3 (RFC 8446).
    case tls13

    var number: Int32 { self == .tls12 ? TLS1_2_VERSION : TLS1_3_VERSION }
}

/// The options that servers and clients share.
public struct TLSOptions: Sendable {
    /// The oldest version to speak; by default TLS 1.2.
    public var minimumVersion = TLSVersion.tls12
    /// The application protocols (ALPN, RFC 7301) to offer, the preferred one first, for example `h2` and `http/1.1`.
    /// If empty, ALPN is not used. The server's preference decides; it refuses a client that offers only other
    /// protocols.
    public var applicationProtocols: [String] = []
    /// The limit for the duration of the handshake: above zero and at most a day; by default 10 s.
    public var handshakeTimeout = Duration.seconds(10)

    /// Creates the default options.
    public init() {}
}

/// The TLS context of a server. Make it once and use it for any number of connections. A context is `Sendable`; any
/// thread may use it. To change a certificate, make a new context and use it for new connections.
public struct TLSServerContext: Sendable {
    /// The policy for client certificates.
    public enum Clients: Sendable {
        /// No certificate is requested.
        case anonymous
        /// Clients may show a certificate, which one of the roots must have signed.
        case mayIdentify(TLSRoots)
        /// Clients must show a certificate that one of the roots has signed.
        case mustIdentify(TLSRoots)
    }

    let context: TLSContext

    /// Makes the context of a server.
    ///
    /// - Parameters:
    ///   - identity: the server's certificate and key.
    ///   - clients: the policy for client certificates.
    ///   - options: versions, protocols, and the timeout.
    /// - Throws: ``TLSError`` of the kind `configuration` if a file cannot be read or is not PEM, if
    ///   certificate and key do not belong together or are too weak, or if an option makes no sense.
    public init(
        identity: TLSIdentity, clients: Clients = .anonymous, options: TLSOptions = TLSOptions()
    ) throws(TLSError) {
        context = try TLSContext(TLS_server_method(), options)
        try context.use(identity)
        // Without a name for its sessions, a server that requests certificates could resume none.
        let name = Array("RunLoopTLS".utf8)
        SSL_CTX_set_session_id_context(context.pointer, name, UInt32(name.count))
        switch clients {
        case .anonymous: break
        case .mayIdentify(let roots): try context.verifyPeers(by: roots)
        case .mustIdentify(let roots): try context.verifyPeers(by: roots, SSL_VERIFY_FAIL_IF_NO_PEER_CERT)
        }
        guard !context.protocols.isEmpty else { return }
        // Unretained: the context outlives every connection that is made with it.
        SSL_CTX_set_alpn_select_cb(
            context.pointer, chooseProtocol, Unmanaged.passUnretained(context).toOpaque())
    }
}

/// The TLS context of a client. Make it once and use it for any number of connections. A context is `Sendable`; any
/// thread may use it.
public struct TLSClientContext: Sendable {
    /// The verification of a server's certificate.
    public enum Verification: Sendable, Hashable {
        /// Signed by one of the roots, not expired, and for the requested host.
        case full
        /// Signed by one of the roots and not expired, for any host: for peers without a name.
        case issuerOnly
        /// No verification: the bytes are encrypted for an unknown peer. For tests only.
        case none
    }

    let context: TLSContext
    let verification: Verification
    /// The protocols to offer in place of the context's, in wire format.
    private(set) var protocols: [UInt8]?

    /// Makes the context of a client.
    ///
    /// - Parameters:
    ///   - roots: the trusted roots.
    ///   - identity: the client's certificate and key, for servers that ask for one.
    ///   - verification: how to verify the server's certificate.
    ///   - options: versions, protocols, and the timeout.
    /// - Throws: ``TLSError`` of the kind `configuration` if a file cannot be read or is not PEM, if
    ///   certificate and key do not belong together or are too weak, or if an option makes no sense.
    public init(
        roots: TLSRoots = .system, identity: TLSIdentity? = nil, verification: Verification = .full,
        options: TLSOptions = TLSOptions()
    ) throws(TLSError) {
        context = try TLSContext(TLS_client_method(), options)
        self.verification = verification
        if verification != .none { try context.verifyPeers(by: roots) }
        if let identity { try context.use(identity) }
        if !context.protocols.isEmpty {
            SSL_CTX_set_alpn_protos(context.pointer, context.protocols, UInt32(context.protocols.count))
        }
    }

    /// True if the context has application protocols of its own, which it offers to servers.
    @_spi(Ports) public var offersProtocols: Bool { !(protocols ?? context.protocols).isEmpty }

    /// Returns the context with other application protocols, for a client whose connections speak different ones.
    @_spi(Ports) public func offering(_ protocols: [String]) throws(TLSError) -> TLSClientContext {
        var context = self
        context.protocols = try TLSContext.wireFormat(protocols)
        return context
    }
}

final class TLSContext: Sendable {
    // Unsafe, because it is a pointer: only initialisers change the context, and all threads may use a finished OpenSSL
    // context.
    nonisolated(unsafe) let pointer: OpaquePointer
    let handshakeTimeout: Duration
    /// The protocols in wire format, each with a length prefix.
    let protocols: [UInt8]

    init(_ method: OpaquePointer, _ options: TLSOptions) throws(TLSError) {
        let protocols = try Self.wireFormat(options.applicationProtocols)
        guard options.handshakeTimeout > .zero, options.handshakeTimeout <= .seconds(86_400) else {
            throw TLSError(
                .configuration,
                "a handshake may take a time above zero and up to a day; it was given \(options.handshakeTimeout)")
        }
        // The context has keys for tickets, which are random.
        Self.takeNumbersOfWorld()
        ERR_clear_error()
        guard let pointer = SSL_CTX_new(method) else { throw .configuration("make a context") }
        self.pointer = pointer
        self.protocols = protocols
        handshakeTimeout = options.handshakeTimeout
        rlk_ssl_ctx_set_usual(pointer)
        takeTimeOfWorld()
        try Self.check(rlk_ssl_ctx_set_minimum(pointer, options.minimumVersion.number), "set the oldest version")
        try Self.check(SSL_CTX_set_cipher_list(pointer, Self.ciphers), "set the ciphers")
        // 112 bits of security at least: no RSA key below 2048 bits, and no signature with SHA-1.
        SSL_CTX_set_security_level(pointer, max(2, SSL_CTX_get_security_level(pointer)))
    }

    fileprivate static func wireFormat(_ protocols: [String]) throws(TLSError) -> [UInt8] {
        var bytes: [UInt8] = []
        for name in protocols {
            guard (1...255).contains(name.utf8.count) else {
                throw TLSError(.configuration, "the application protocol \"\(name)\" does not have 1 to 255 bytes")
            }
            bytes += [UInt8(name.utf8.count)] + name.utf8
        }
        return bytes
    }

    /// The ciphers of TLS 1.2 with authenticated encryption and forward secrecy. All ciphers of TLS 1.3 have both.
    private static let ciphers = "ECDHE+AESGCM:ECDHE+CHACHA20"

    deinit {
        SSL_CTX_free(pointer)
    }

    fileprivate func use(_ identity: TLSIdentity) throws(TLSError) {
        let certificates = try identity.chain.certificates()
        defer { certificates.forEach(X509_free) }
        let key = try identity.key.privateKey()
        defer { EVP_PKEY_free(key) }
        assert(!certificates.isEmpty, "a chain has no certificate")
        try Self.check(SSL_CTX_use_certificate(pointer, certificates[0]), "use the certificate")
        for certificate in certificates.dropFirst() {
            try Self.check(rlk_ssl_ctx_add_chain(pointer, certificate), "use the chain")
        }
        try Self.check(SSL_CTX_use_PrivateKey(pointer, key), "use the key")
    }

    fileprivate func verifyPeers(by roots: TLSRoots, _ further: Int32 = 0) throws(TLSError) {
        SSL_CTX_set_verify(pointer, SSL_VERIFY_PEER | further, nil)
        guard case .certificates(let pem) = roots else {
            return try Self.check(SSL_CTX_set_default_verify_paths(pointer), "find the system's roots")
        }
        let certificates = try pem.certificates()
        defer { certificates.forEach(X509_free) }
        for certificate in certificates {
            try Self.check(X509_STORE_add_cert(SSL_CTX_get_cert_store(pointer), certificate), "use the roots")
            // Informs clients of the accepted issuers.
            SSL_CTX_add_client_CA(pointer, certificate)
        }
    }

    private static func check(_ result: Int32, _ operation: String) throws(TLSError) {
        guard result == 1 else { throw .configuration(operation) }
    }
}

/// Chooses the first of the server's protocols that the client speaks.
private let chooseProtocol: SSL_CTX_alpn_select_cb_func = { _, chosen, length, offered, offeredLength, argument in
    // Unmanaged: OpenSSL passes the pointer that was registered with the callback.
    let context = Unmanaged<TLSContext>.fromOpaque(argument!).takeUnretainedValue()
    return context.protocols.withUnsafeBufferPointer { own in
        assert(!own.isEmpty, "a server without protocols chooses one")
        // The result points into one of the two lists; OpenSSL copies it at once.
        var found: UnsafeMutablePointer<UInt8>?
        let status = SSL_select_next_proto(
            &found, length, own.baseAddress, UInt32(own.count), offered, offeredLength)
        chosen?.pointee = UnsafePointer(found)
        return status == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL
    }
}
