/// Replies of the Redis protocol, one after another, in its second or third version.
struct Reply {
    /// The largest number of bytes in the reply to one request.
    static let limit = 16 * 1024 * 1024

    // Not an array that grows byte by byte: that would check at every step whether it has room and is not shared, which
    // took 7 % of the instructions of a GET.
    private(set) var memory: [UInt8] = []
    /// The number of bytes of the memory that are replies.
    private(set) var count = 0
    /// A copy of the replies.
    var bytes: [UInt8] { Array(memory[..<count]) }
    /// The version of the protocol that the client speaks.
    var version = 2
    // The beginning of the present reply, and whether it has been truncated because it was too long.
    private var start = 0
    private var isTooLong = false

    mutating func removeAll() {
        // The memory of a huge reply is released.
        if memory.count > 1 << 20 { memory = [] }
        (count, start) = (0, 0)
    }

    /// Ends the reply to a request. A reply that is too long becomes an error.
    @inline(__always)
    mutating func end() {
        if isTooLong { refuse() }
        start = count
    }

    /// `true` if the present reply is too long, so that nothing more needs to be added to it.
    var isFull: Bool { isTooLong }

    private mutating func refuse() {
        count = start
        isTooLong = false
        error("ERR the reply would be longer than 16 MiB")
    }

    // MARK: Kinds of replies

    mutating func ok() { append("+OK\r\n") }
    mutating func pong() { append("+PONG\r\n") }
    mutating func null() { if version == 2 { append("$-1\r\n") } else { append("_\r\n") } }

    /// Appends a word of the protocol, without line breaks.
    mutating func simple(_ text: StaticString) {
        append("+")
        append(text)
        append("\r\n")
    }

    mutating func integer(_ value: Int) { line(":", value) }

    @inline(__always)
    mutating func bulk(_ value: some Collection<UInt8>) {
        guard count - start + value.count <= Reply.limit else { return isTooLong = true }
        guard !isTooLong else { return }
        add(value.count + Reply.longestLine + 2) { room in
            let begin = Reply.line("$", value.count, in: room)
            let end = room[begin...].update(fromContentsOf: value)
            return Reply.endLine(at: end, in: room)
        }
    }

    mutating func bulk(_ text: String) { bulk(text.utf8) }

    /// Appends text for people.
    mutating func verbatim(_ text: String) {
        guard version > 2 else { return bulk(text) }
        line("=", text.utf8.count + 4)
        append("txt:")
        append(text.utf8)
        append("\r\n")
    }

    mutating func array(count: Int) { line("*", count) }

    /// Begins a map with `count` pairs of a key and a value.
    mutating func map(count: Int) {
        if version == 2 { line("*", 2 * count) } else { line("%", count) }
    }

    /// Begins an unsolicited message with `count` parts.
    mutating func push(count: Int) { line(version == 2 ? "*" : ">", count) }

    mutating func error(_ text: String) {
        error(text.utf8)
    }

    mutating func error(_ text: some Collection<UInt8>) {
        append("-")
        // A line break would end the reply.
        append(text.lazy.map { $0 == 0x0A || $0 == 0x0D ? UInt8(ascii: " ") : $0 })
        append("\r\n")
    }

    // MARK: Bytes

    /// The largest number of bytes in the line of a number.
    private static let longestLine = 23

    private mutating func line(_ kind: Unicode.Scalar, _ value: Int) {
        add(Reply.longestLine) { Reply.line(kind, value, in: $0) }
    }

    private mutating func append(_ text: StaticString) {
        append(UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    private mutating func append(_ bytes: some Collection<UInt8>) {
        add(bytes.count) { $0.update(fromContentsOf: bytes) }
    }

    /// Writes at most `most` bytes at the end.
    ///
    /// - Parameter write: writes the bytes and returns their number.
    @inline(__always)
    private mutating func add(_ most: Int, _ write: (UnsafeMutableBufferPointer<UInt8>) -> Int) {
        if memory.count - count < most { memory += [UInt8](repeating: 0, count: max(64, memory.count, most)) }
        let start = count
        count += memory.withUnsafeMutableBufferPointer { write(UnsafeMutableBufferPointer(rebasing: $0[start...])) }
    }

    /// - Returns: the end of the line.
    @inline(__always)
    private static func line(_ kind: Unicode.Scalar, _ value: Int, in room: UnsafeMutableBufferPointer<UInt8>) -> Int {
        room[0] = UInt8(ascii: kind)
        var first = 1
        if value < 0 {
            room[1] = UInt8(ascii: "-")
            first = 2
        }
        var end = first + 1
        var bound: UInt = 10
        // No number has more than 19 digits.
        while value.magnitude >= bound, end - first < 19 {
            end += 1
            bound *= 10
        }
        var rest = value.magnitude
        for index in stride(from: end - 1, through: first, by: -1) {
            room[index] = UInt8(ascii: "0") + UInt8(rest % 10)
            rest /= 10
        }
        return endLine(at: end, in: room)
    }

    @inline(__always)
    private static func endLine(at index: Int, in room: UnsafeMutableBufferPointer<UInt8>) -> Int {
        room[index] = UInt8(ascii: "\r")
        room[index + 1] = UInt8(ascii: "\n")
        return index + 2
    }
}
