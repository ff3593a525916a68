#if Adapters
internal import HTTPTypes
internal import NIOCore

/// The bytes of HTTP/1.1 answers on their way to the channel. Heads, small bodies and ends are collected, and leave as one
/// buffer.
struct AnswerBytes {
    /// The fields of a head that are not the program's.
    struct Framing {
        var length: Int?
        var isChunked = false
        /// The value of `Connection`; `nil` for none.
        var connection: String?
    }

    private var bytes = ByteBuffer()
    private var isChunked = false

    /// The largest piece that is copied. For a larger one, a further buffer costs less.
    private static let mostCopied = 1024
    /// The largest number of collected bytes. The channel does not count them towards its limit.
    private static let mostCollected = 8 * 1024

    /// Takes the collected bytes; `nil` if there are none.
    mutating func take() -> ByteBuffer? {
        guard bytes.readableBytes > 0 else { return nil }
        defer { bytes = ByteBuffer() }
        return bytes
    }

    mutating func writeContinue() { bytes.writeString("HTTP/1.1 100 Continue\r\n\r\n") }

    /// Writes a head. Its names and values are valid, because HTTPTypes has checked them.
    mutating func writeHead(
        _ status: HTTPResponse.Status, _ fields: HTTPFields, isVersion10: Bool, _ framing: Framing, date: String
    ) {
        isChunked = framing.isChunked
        let phrase = status.reasonPhrase
        var (size, hasDate) = (Self.mostAdded + phrase.utf8.count, false)
        for field in fields {
            size += field.name.rawName.utf8.count + field.value.utf8.count + 4
            if field.name == .date { hasDate = true }
        }
        bytes.writeWithUnsafeMutableBytes(minimumWritableBytes: size) { room in
            var head = HeadText(room)
            head.add(isVersion10 ? "HTTP/1.0 " : "HTTP/1.1 ")
            head.add(status.code)
            head.add(" ")
            head.add(phrase)
            head.add("\r\n")
            for field in fields where !HTTPFields.framing.contains(field.name) {
                head.add(field.name.rawName, field.value)
            }
            if let length = framing.length {
                head.add("Content-Length: ")
                head.add(length)
                head.add("\r\n")
            } else if isChunked {
                head.add("Transfer-Encoding", "chunked")
            }
            if !hasDate { head.add("Date", date) }
            if let connection = framing.connection { head.add("Connection", connection) }
            head.add("\r\n")
            return head.count
        }
    }

    /// The largest number of bytes in the parts of a head that are not the program's.
    private static let mostAdded = 256

    /// Writes a piece of a body, which is not empty.
    ///
    /// - Returns: the buffers that go to the channel now, one after the other.
    mutating func write(_ piece: ByteBuffer) -> (ByteBuffer?, ByteBuffer?) {
        if isChunked { bytes.writeString(String(piece.readableBytes, radix: 16) + "\r\n") }
        let isCopied = piece.readableBytes <= Self.mostCopied
        if isCopied { bytes.writeImmutableBuffer(piece) }
        let collected = isCopied && bytes.readableBytes < Self.mostCollected ? nil : take()
        if isChunked { bytes.writeString("\r\n") }
        return (collected, isCopied ? nil : piece)
    }

    /// Writes the end of a body.
    mutating func writeEnd(_ trailers: HTTPFields?) {
        guard isChunked else { return }
        isChunked = false
        bytes.writeString("0\r\n")
        for field in trailers ?? [:] where !HTTPFields.framing.contains(field.name) {
            bytes.writeString("\(field.name.rawName): \(field.value)\r\n")
        }
        bytes.writeString("\r\n")
    }
}

/// Writes text into memory that has room for it.
private struct HeadText {
    private let room: UnsafeMutableRawBufferPointer
    private(set) var count = 0

    init(_ room: UnsafeMutableRawBufferPointer) {
        self.room = room
    }

    mutating func add(_ text: String) {
        var text = text
        text.withUTF8 { text in
            UnsafeMutableRawBufferPointer(rebasing: room[count...]).copyMemory(from: UnsafeRawBufferPointer(text))
            count += text.count
        }
    }

    mutating func add(_ number: Int) { add(String(number)) }

    mutating func add(_ name: String, _ value: String) {
        add(name)
        add(": ")
        add(value)
        add("\r\n")
    }
}
#endif
