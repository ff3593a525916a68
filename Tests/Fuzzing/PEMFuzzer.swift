// Feeds the PEM readers in RunLoopTLS with libFuzzer's input; compiled together with them by `make fuzz`. The first
// inputs are a certificate and a key.

internal import COpenSSL

func readFile(_ path: String, upTo most: Int) throws(TLSError) -> [UInt8] { [] }

extension TLSContext {
    static func takeNumbersOfWorld() {}
    func takeTimeOfWorld() {}
}

private let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

/// Returns a text with a correct label around `bytes`.
private func wrapped(_ bytes: some Collection<UInt8>, as label: String) -> [UInt8] {
    var text = Array("-----BEGIN \(label)-----".utf8)
    var (bits, held, column) = (UInt32(0), 0, 0)
    func add(_ digit: UInt8) {
        if column % 64 == 0 { text.append(UInt8(ascii: "\n")) }
        text.append(digit)
        column += 1
    }
    for byte in bytes {
        (bits, held) = (bits << 8 | UInt32(byte), held + 8)
        while held >= 6 {
            held -= 6
            add(alphabet[Int(bits >> UInt32(held) & 63)])
        }
    }
    if held > 0 { add(alphabet[Int(bits << UInt32(6 - held) & 63)]) }
    while column % 4 != 0 { add(UInt8(ascii: "=")) }
    return text + Array("\n-----END \(label)-----\n".utf8)
}

/// Returns the result of `read`; `nil` if it throws an error, which must have a reason.
private func result<Result>(_ read: () throws(TLSError) -> Result) -> Result? {
    do throws(TLSError) {
        return try read()
    } catch {
        precondition(error.kind == .configuration && !error.reason.isEmpty, "an error without a reason")
        return nil
    }
}

/// Reads a chain and a key, and makes contexts of the readable ones.
private func use(chain: [UInt8], key: [UInt8]) {
    let (chain, key) = (PEM.bytes(chain), PEM.bytes(key))
    let certificates = result { () throws(TLSError) in try chain.certificates() }
    certificates?.forEach(X509_free)
    let privateKey = result { () throws(TLSError) in try key.privateKey() }
    privateKey.map(EVP_PKEY_free)
    guard certificates != nil else { return }
    _ = result { () throws(TLSError) in try TLSClientContext(roots: .certificates(chain)) }
    guard privateKey != nil else { return }
    _ = result { () throws(TLSError) in try TLSServerContext(identity: TLSIdentity(chain: chain, key: key)) }
}

/// Reads the input as text, and as the contents of a certificate or a key.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let input = UnsafeBufferPointer(start: data, count: count)
    use(chain: Array(input), key: Array(input))
    for label in ["PRIVATE KEY", "EC PRIVATE KEY", "ENCRYPTED PRIVATE KEY"] {
        use(chain: wrapped(input, as: "CERTIFICATE"), key: wrapped(input, as: label))
    }
    return 0
}
