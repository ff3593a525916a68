internal import COpenSSL

/// Certificates or a key in PEM: the text between `-----BEGIN …-----` and `-----END …-----`, at most 16 MiB.
public enum PEM: Sendable, Hashable {
    /// The path of a regular file, which is read when a context is made.
    case file(String)
    /// The text itself.
    case bytes([UInt8])
}

/// The identity of this side: a certificate, its chain to a root, and its private key.
public struct TLSIdentity: Sendable {
    /// The certificate, followed by the issuer of each previous one. The root may be left out.
    public let chain: PEM
    /// The key of the first certificate, not encrypted.
    public let key: PEM

    /// Creates an identity, which is checked when a context is made from it.
    public init(chain: PEM, key: PEM) {
        self.chain = chain
        self.key = key
    }
}

/// The trusted roots.
public enum TLSRoots: Sendable {
    /// The system's roots; on Debian and Ubuntu they come with `ca-certificates`.
    case system
    /// Only these certificates.
    case certificates(PEM)
}

extension PEM {
    private static let mostBytes = 16 * 1024 * 1024

    private var name: String {
        switch self {
        case .file(let path): path
        case .bytes: "the PEM text given"
        }
    }

    /// Calls `body` with a memory BIO, from which OpenSSL reads the text.
    private func read<Result>(_ body: (OpaquePointer) throws(TLSError) -> Result) throws(TLSError) -> Result {
        let bytes: [UInt8] =
            switch self {
            case .file(let path): try readFile(path, upTo: Self.mostBytes)
            case .bytes(let bytes): bytes
            }
        guard bytes.count <= Self.mostBytes else {
            throw TLSError(.configuration, "\(name): more than 16 MiB, which is no PEM")
        }
        // The memory holds OpenSSL's own copy.
        let memory = BIO_new(BIO_s_mem())!
        defer { BIO_free(memory) }
        let written = BIO_write(memory, bytes, Int32(bytes.count))
        assert(Int(written) == bytes.count || bytes.isEmpty, "OpenSSL has copied a part of a text")
        return try body(memory)
    }

    /// Returns the certificates in order. The caller frees them.
    func certificates() throws(TLSError) -> [OpaquePointer] {
        let found = try read { memory throws(TLSError) in
            var found: [OpaquePointer] = []
            while let certificate = PEM_read_bio_X509(memory, nil, noPassword, nil) { found.append(certificate) }
            return found
        }
        let last = ERR_peek_last_error()
        guard !found.isEmpty, ERR_GET_REASON(last) == PEM_R_NO_START_LINE else {
            found.forEach(X509_free)
            let reason = ERR_GET_REASON(last) == PEM_R_NO_START_LINE ? "no certificate" : reasonText(last)
            throw TLSError(.configuration, "\(name): \(reason)")
        }
        ERR_clear_error()
        return found
    }

    /// Returns the private key. The caller frees it.
    func privateKey() throws(TLSError) -> OpaquePointer {
        try read { memory throws(TLSError) in
            if let key = PEM_read_bio_PrivateKey(memory, nil, noPassword, nil) { return key }
            let last = ERR_peek_last_error()
            let reason =
                switch ERR_GET_REASON(last) {
                case PEM_R_NO_START_LINE, rlk_err_unsupported(): "no private key"
                case PEM_R_BAD_PASSWORD_READ: "the key is encrypted; decrypt it with openssl pkey"
                default: reasonText(last)
                }
            throw TLSError(.configuration, "\(name): \(reason)")
        }
    }
}

/// A callback without which OpenSSL would ask for a password at the terminal.
private func noPassword(
    _: UnsafeMutablePointer<CChar>?, _: Int32, _: Int32, _: UnsafeMutableRawPointer?
) -> Int32 { -1 }
