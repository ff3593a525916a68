internal import COpenSSL

extension TLSError {
    /// Creates the error for the last entry in OpenSSL's queue; for zero, the stream was truncated.
    init(_ error: UInt, isHandshaking: Bool, verification: Int) {
        let kind = error == 0 ? Kind.truncated : Kind(ERR_GET_REASON(error), isHandshaking, verification)
        switch kind {
        case .certificateExpired, .certificateNotYetValid, .wrongHost, .unknownIssuer, .certificateRejected:
            self.init(kind, String(cString: X509_verify_cert_error_string(verification)))
        default:
            self.init(kind, error == 0 ? "the peer has closed the connection" : reasonText(error))
        }
    }

    /// Returns the error for a setting that OpenSSL refuses.
    static func configuration(_ operation: String) -> TLSError {
        let error = ERR_peek_last_error()
        return TLSError(.configuration, error == 0 ? operation : "\(operation): \(reasonText(error))")
    }
}

extension TLSError.Kind {
    fileprivate init(_ reason: Int32, _ isHandshaking: Bool, _ verification: Int) {
        self =
            switch reason {
            case SSL_R_CERTIFICATE_VERIFY_FAILED: Self(verification: Int32(verification))
            case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE: .certificateMissing
            case SSL_R_HTTP_REQUEST, SSL_R_HTTPS_PROXY_REQUEST: .notTLS
            case SSL_R_WRONG_VERSION_NUMBER, SSL_R_BAD_RECORD_TYPE, SSL_R_RECORD_LENGTH_MISMATCH,
                SSL_R_PACKET_LENGTH_TOO_LONG, SSL_R_LENGTH_MISMATCH:
                isHandshaking ? .notTLS : .protocolViolation
            case SSL_R_NO_SHARED_CIPHER, SSL_R_NO_SHARED_SIGNATURE_ALGORITHMS, SSL_R_UNSUPPORTED_PROTOCOL,
                SSL_R_VERSION_TOO_LOW, SSL_R_NO_PROTOCOLS_AVAILABLE, SSL_R_NO_APPLICATION_PROTOCOL,
                SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM, SSL_R_NO_SUITABLE_KEY_SHARE:
                .nothingInCommon
            case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE, SSL_R_TLSV1_ALERT_PROTOCOL_VERSION,
                SSL_R_TLSV1_ALERT_INSUFFICIENT_SECURITY, SSL_AD_REASON_OFFSET + SSL_AD_NO_APPLICATION_PROTOCOL:
                .nothingInCommon
            case SSL_R_UNEXPECTED_EOF_WHILE_READING: .truncated
            // Alerts from the peer have numbers of their own.
            case SSL_AD_REASON_OFFSET...(SSL_AD_REASON_OFFSET + 255): .refusedByPeer
            default: .protocolViolation
            }
    }

    private init(verification: Int32) {
        self =
            switch verification {
            case X509_V_ERR_CERT_HAS_EXPIRED: .certificateExpired
            case X509_V_ERR_CERT_NOT_YET_VALID: .certificateNotYetValid
            case X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH: .wrongHost
            case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
                X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE, X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT,
                X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, X509_V_ERR_CERT_UNTRUSTED, X509_V_ERR_CERT_SIGNATURE_FAILURE:
                .unknownIssuer
            default: .certificateRejected
            }
    }
}

func reasonText(_ error: UInt) -> String {
    if let text = ERR_reason_error_string(error) { return String(cString: text) }
    return "OpenSSL error \(String(error, radix: 16))"
}
