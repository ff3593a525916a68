/// Replies of the Redis protocol, one after another, in its second or third version.
struct Reply {
    /// The most bytes that the reply to one request may have.
    static let limit = 16 * 1024 * 1024

    private(set) var bytes: [UInt8] = []
    /// The version of the protocol that the client speaks.
    var version = 2
    // Where the present reply begins, and whether it has left out something because it was too long.
    private var start = 0
    private var isTooLong = false

    mutating func removeAll() {
        // The memory of a huge reply is given back.
        bytes.removeAll(keepingCapacity: bytes.capacity <= 1 << 20)
        start = 0
    }

    /// Ends the reply to a request; one that is too long becomes an error.
    @inline(__always)
    mutating func end() {
        if isTooLong { refuse() }
        start = bytes.count
    }

    /// Whether the present reply is too long, so that nothing more needs to be added to it.
    var isFull: Bool { isTooLong }

    private mutating func refuse() {
        bytes.removeSubrange(start...)
        isTooLong = false
        error("ERR the reply would be longer than 16 MiB")
    }

    // MARK: Kinds of replies

    mutating func ok() { append("+OK\r\n") }
    mutating func pong() { append("+PONG\r\n") }
    mutating func null() { if version == 2 { append("$-1\r\n") } else { append("_\r\n") } }

    /// A word of the protocol's own, without line breaks.
    mutating func simple(_ text: StaticString) {
        bytes.append(UInt8(ascii: "+"))
        append(text)
        endLine()
    }

    mutating func integer(_ value: Int) { line(":", value) }

    mutating func bulk(_ value: some Collection<UInt8>) {
        guard hasRoom(for: value.count) else { return }
        line("$", value.count)
        bytes.append(contentsOf: value)
        endLine()
    }

    mutating func bulk(_ value: UnsafeBufferPointer<UInt8>) {
        guard hasRoom(for: value.count) else { return }
        line("$", value.count)
        bytes.append(contentsOf: value)
        endLine()
    }

    mutating func bulk(_ text: String) { bulk(text.utf8) }

    /// Text for people.
    mutating func verbatim(_ text: String) {
        guard version > 2 else { return bulk(text) }
        line("=", text.utf8.count + 4)
        append("txt:")
        bytes.append(contentsOf: text.utf8)
        endLine()
    }

    mutating func array(count: Int) { line("*", count) }

    /// So many keys and values follow, in pairs.
    mutating func map(count: Int) {
        if version == 2 { line("*", 2 * count) } else { line("%", count) }
    }

    /// A message that nobody has just asked for, of so many parts.
    mutating func push(count: Int) { line(version == 2 ? "*" : ">", count) }

    mutating func error(_ text: String) {
        error(text.utf8)
    }

    mutating func error(_ text: some Collection<UInt8>) {
        bytes.append(UInt8(ascii: "-"))
        // A line break would end the reply.
        bytes.append(contentsOf: text.lazy.map { $0 == 0x0A || $0 == 0x0D ? UInt8(ascii: " ") : $0 })
        endLine()
    }

    // MARK: Bytes

    @inline(__always)
    private mutating func hasRoom(for count: Int) -> Bool {
        if bytes.count - start + count > Reply.limit { isTooLong = true }
        return !isTooLong
    }

    private mutating func append(_ text: StaticString) {
        bytes.append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    @inline(__always)
    private mutating func line(_ kind: Unicode.Scalar, _ value: Int) {
        bytes.append(UInt8(ascii: kind))
        if value >= 0, value < 10 {
            bytes.append(UInt8(ascii: "0") + UInt8(value))
        } else {
            bytes.append(contentsOf: String(value).utf8)
        }
        endLine()
    }

    @inline(__always)
    private mutating func endLine() {
        bytes.append(UInt8(ascii: "\r"))
        bytes.append(UInt8(ascii: "\n"))
    }
}
