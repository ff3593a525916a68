import Testing

extension TemporaryDirectory {
    /// Makes a self-signed certificate for 127.0.0.1, and its key.
    func makeCertificate(for name: String) throws {
        let failure = try output(
            of: "openssl",
            [
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1", "-subj",
                "/CN=\(name)", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", self["key.pem"], "-out",
                self["chain.pem"],
            ]
        ).failure
        #expect(failure == nil)
    }
}
