/// An HTTP/2 client that sends any frames.
final class RawHTTP2 {
    struct Frame {
        let type: UInt8
        let flags: UInt8
        let stream: UInt32
        let payload: [UInt8]

        /// The error of a frame that ends something, in its last four bytes, or in the four after the last stream.
        var error: UInt32? {
            switch type {
            case RawHTTP2.reset: RawHTTP2.number(payload[0..<4])
            case RawHTTP2.goAway: RawHTTP2.number(payload[4..<8])
            default: nil
            }
        }
    }

    static let (data, headers, reset, settings, ping): (UInt8, UInt8, UInt8, UInt8, UInt8) = (0, 1, 3, 4, 6)
    static let (goAway, windowUpdate, continuation): (UInt8, UInt8, UInt8) = (7, 8, 9)
    static let (endStream, endHeaders, ack): (UInt8, UInt8, UInt8) = (1, 4, 1)
    static let enhanceYourCalm: UInt32 = 11

    let client: RawClient
    var answersPings = true

    init(port: Int) throws {
        client = try RawClient(port: port)
        client.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        send(Self.settings)
    }

    /// Returns the head of a request, compressed with the static table: the method, the path, and `host: x`.
    static func head(_ method: String = "GET", _ path: String = "/") -> [UInt8] {
        // Literals that are not indexed, with names of the table.
        func field(_ name: UInt8, _ value: String) -> [UInt8] { [name, UInt8(value.utf8.count)] + Array(value.utf8) }
        return field(2, method) + field(4, path) + [0x86] + field(1, "x")
    }

    static func bytes(_ type: UInt8, _ flags: UInt8 = 0, _ stream: UInt32 = 0, _ payload: [UInt8] = []) -> [UInt8] {
        let count = payload.count
        let length = [UInt8(count >> 16), UInt8(count >> 8 & 255), UInt8(count & 255)]
        return length + [type, flags] + (0..<4).map { UInt8(truncatingIfNeeded: stream >> (24 - 8 * $0)) } + payload
    }

    @discardableResult
    func send(_ type: UInt8, _ flags: UInt8 = 0, _ stream: UInt32 = 0, _ payload: [UInt8] = []) -> Bool {
        client.send(Self.bytes(type, flags, stream, payload))
    }

    /// Returns the next frame; `nil` at the end.
    func next() -> Frame? {
        let head = client.receive(9)
        guard head.count == 9 else { return nil }
        let payload = client.receive(Int(Self.number([0] + head[0..<3])))
        if head[3] == Self.ping, head[4] & Self.ack == 0, answersPings { send(Self.ping, Self.ack, 0, payload) }
        return Frame(type: head[3], flags: head[4], stream: Self.number(head[5..<9]) & 0x7fff_ffff, payload: payload)
    }

    /// Returns the frames until the daemon closes.
    func rest() -> [Frame] {
        var frames: [Frame] = []
        while let frame = next() { frames.append(frame) }
        return frames
    }

    private static func number(_ bytes: some Sequence<UInt8>) -> UInt32 { bytes.reduce(0) { $0 << 8 | UInt32($1) } }
}
