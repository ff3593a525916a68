/// What is wrong with a certificate or a key, or why a TLS handshake failed or a connection was broken off.
public struct TLSError: Error, Sendable, Hashable, CustomStringConvertible {
    /// What went wrong, as far as a program may need to know.
    public enum Kind: Sendable, Hashable, CaseIterable {
        /// One's own certificate, key or setting cannot be used.
        case configuration
        /// The handshake took too long.
        case handshakeTimeout
        /// The peer does not speak TLS.
        case notTLS
        /// The two sides share no version, no cipher or no application protocol.
        case nothingInCommon
        /// The peer's certificate has expired.
        case certificateExpired
        /// The peer's certificate is not valid yet.
        case certificateNotYetValid
        /// The certificate is for another host.
        case wrongHost
        /// Nobody who is trusted has signed the peer's certificate.
        case unknownIssuer
        /// Something else is wrong with the peer's certificate.
        case certificateRejected
        /// The client has shown no certificate, though one is required.
        case certificateMissing
        /// The peer has broken off, and says why.
        case refusedByPeer
        /// The stream ended before the peer said that it was complete, so something may be missing.
        case truncated
        /// The peer, or somebody in between, sent what TLS does not allow.
        case protocolViolation
    }

    /// What went wrong.
    public let kind: Kind
    /// The reason in the words of the TLS library.
    public let reason: String

    init(_ kind: Kind, _ reason: String) {
        self.kind = kind
        self.reason = reason
    }

    /// What happened, what to do about it, and the library's reason.
    public var description: String { "\(kind.advice) (\(reason))" }
}

extension TLSError.Kind {
    fileprivate var advice: String {
        switch self {
        case .configuration: "the TLS settings cannot be used: check the certificate, the key and the roots"
        case .handshakeTimeout: "the TLS handshake took too long: the peer may not speak TLS, or be overloaded"
        case .notTLS: "the peer does not speak TLS: check the port, and that the peer uses TLS on it"
        case .nothingInCommon: "no TLS version, cipher or application protocol in common: compare both sides' settings"
        case .certificateExpired: "the peer's certificate has expired: it has to be renewed"
        case .certificateNotYetValid: "the peer's certificate is not valid yet: check the clocks of both sides"
        case .wrongHost: "the certificate is for another host: connect by a name that it lists"
        case .unknownIssuer:
            "nobody trusted has signed the certificate: add its authority to the roots, or complete the peer's chain"
        case .certificateRejected: "the peer's certificate is not acceptable"
        case .certificateMissing: "the client has shown no certificate: give it an identity"
        case .refusedByPeer: "the peer has broken off: its log says more"
        case .truncated: "the stream was cut off: what came last may be incomplete"
        case .protocolViolation: "the peer has sent what TLS does not allow"
        }
    }
}
