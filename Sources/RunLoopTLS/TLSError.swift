/// An error in a certificate or a key, a failed TLS handshake, or an aborted connection.
public struct TLSError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kinds of error that a program can distinguish.
    public enum Kind: Sendable, Hashable, CaseIterable {
        /// A certificate, key or setting of this side cannot be used.
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
        /// No trusted root has signed the peer's certificate.
        case unknownIssuer
        /// The peer's certificate is invalid for another reason.
        case certificateRejected
        /// The client has shown no certificate, though the server requires one.
        case certificateMissing
        /// The peer has aborted the connection with an alert.
        case refusedByPeer
        /// The stream ended without the peer's notice that it is complete, so bytes may be missing.
        case truncated
        /// The peer, or a third party, sent bytes that TLS does not allow.
        case protocolViolation
    }

    /// The kind of error.
    public let kind: Kind
    /// The reason, as the TLS library states it.
    public let reason: String

    init(_ kind: Kind, _ reason: String) {
        self.kind = kind
        self.reason = reason
    }

    /// The error, advice for it, and the library's reason.
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
            "no trusted authority has signed the certificate: add its issuer to the roots, or complete the peer's chain"
        case .certificateRejected: "the peer's certificate is not acceptable"
        case .certificateMissing: "the client has shown no certificate: give it an identity"
        case .refusedByPeer: "the peer has ended the handshake or the connection: see its log for the reason"
        case .truncated: "the stream was cut off: the last bytes may be incomplete"
        case .protocolViolation: "the peer has sent what TLS does not allow"
        }
    }
}
