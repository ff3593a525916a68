internal import COpenSSL
internal import Glibc
package import RunLoopTLS

/// Signs certificates for tests, with keys that live as long as the authority.
package final class Authority {
    private let key: OpaquePointer
    private let certificate: OpaquePointer

    package init(_ name: String = "Tests") {
        key = makeKey()
        certificate = makeCertificate(name, key, [(NID_basic_constraints, "critical,CA:TRUE")], -3600, 3600)
        X509_set_issuer_name(certificate, X509_get_subject_name(certificate))
        precondition(X509_sign(certificate, key, EVP_sha256()) > 0)
    }

    deinit {
        X509_free(certificate)
        EVP_PKEY_free(key)
    }

    package var pem: [UInt8] { text { PEM_write_bio_X509($0, certificate) } }
    package var roots: TLSRoots { .certificates(.bytes(pem)) }

    /// Makes a certificate and its key.
    ///
    /// - Parameters:
    ///   - names: the subjects of the certificate, as `DNS:localhost` or `IP:127.0.0.1`.
    ///   - subject: the common name.
    ///   - begin: the beginning of its validity, in seconds from now.
    ///   - end: the end of its validity, in seconds from now.
    ///   - bits: the length of an RSA key; a key of the curve P-256 by default.
    package func identity(
        for names: String = "DNS:localhost", subject: String = "server", from begin: Int = -3600, until end: Int = 3600,
        bits: Int32? = nil
    ) -> TLSIdentity {
        let ownKey = makeKey(bits: bits)
        let own = makeCertificate(subject, ownKey, [(NID_subject_alt_name, names)], begin, end)
        defer {
            X509_free(own)
            EVP_PKEY_free(ownKey)
        }
        X509_set_issuer_name(own, X509_get_subject_name(certificate))
        precondition(X509_sign(own, key, EVP_sha256()) > 0)
        return TLSIdentity(
            chain: .bytes(text { PEM_write_bio_X509($0, own) }),
            key: .bytes(text { PEM_write_bio_PrivateKey($0, ownKey, nil, nil, 0, nil, nil) }))
    }
}

/// Makes a key of the curve P-256, or an RSA key of `bits` bits.
private func makeKey(bits: Int32? = nil) -> OpaquePointer {
    let context = EVP_PKEY_CTX_new_id(bits == nil ? EVP_PKEY_EC : EVP_PKEY_RSA, nil)
    defer { EVP_PKEY_CTX_free(context) }
    var key: OpaquePointer?
    precondition(EVP_PKEY_keygen_init(context) == 1)
    if let bits {
        precondition(EVP_PKEY_CTX_set_rsa_keygen_bits(context, bits) == 1)
    } else {
        precondition(EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context, NID_X9_62_prime256v1) == 1)
    }
    precondition(EVP_PKEY_keygen(context, &key) == 1)
    return key!
}

/// Makes a certificate without an issuer and a signature.
private func makeCertificate(
    _ subject: String, _ key: OpaquePointer, _ extensions: [(Int32, String)], _ begin: Int, _ end: Int
) -> OpaquePointer {
    let certificate = X509_new()!
    X509_set_version(certificate, 2)
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), Int.random(in: 1..<(1 << 31)))
    X509_gmtime_adj(X509_getm_notBefore(certificate), begin)
    X509_gmtime_adj(X509_getm_notAfter(certificate), end)
    X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8, subject, -1, -1, 0)
    X509_set_pubkey(certificate, key)
    for (kind, value) in extensions {
        let added = X509V3_EXT_conf_nid(nil, nil, kind, value)
        precondition(added != nil, "no extension \(value)")
        X509_add_ext(certificate, added, -1)
        X509_EXTENSION_free(added)
    }
    return certificate
}

/// Returns the output of `write`.
private func text(_ write: (OpaquePointer) -> Int32) -> [UInt8] {
    let memory = BIO_new(BIO_s_mem())!
    defer { BIO_free(memory) }
    precondition(write(memory) == 1)
    var bytes = [UInt8](repeating: 0, count: BIO_ctrl_pending(memory))
    BIO_read(memory, &bytes, Int32(bytes.count))
    return bytes
}
