/// Replies of the Redis protocol, one after another.
struct Reply {
    private(set) var bytes: [UInt8] = []

    mutating func removeAll() {
        // The memory of a huge reply is given back.
        bytes.removeAll(keepingCapacity: bytes.capacity <= 1 << 20)
    }

    mutating func ok() { append("+OK\r\n") }
    mutating func pong() { append("+PONG\r\n") }
    mutating func null() { append("$-1\r\n") }

    mutating func integer(_ value: Int) {
        bytes.append(UInt8(ascii: ":"))
        append(value)
        endLine()
    }

    mutating func bulk(_ value: some Collection<UInt8>) {
        bytes.append(UInt8(ascii: "$"))
        append(value.count)
        endLine()
        bytes.append(contentsOf: value)
        endLine()
    }

    mutating func bulk(_ value: UnsafeBufferPointer<UInt8>) {
        bytes.append(UInt8(ascii: "$"))
        append(value.count)
        endLine()
        bytes.append(contentsOf: value)
        endLine()
    }

    mutating func array(count: Int) {
        bytes.append(UInt8(ascii: "*"))
        append(count)
        endLine()
    }

    mutating func error(_ text: String) {
        error(text.utf8)
    }

    mutating func error(_ text: some Collection<UInt8>) {
        bytes.append(UInt8(ascii: "-"))
        // A line break would end the reply.
        bytes.append(contentsOf: text.lazy.map { $0 == 0x0A || $0 == 0x0D ? UInt8(ascii: " ") : $0 })
        endLine()
    }

    private mutating func append(_ text: StaticString) {
        bytes.append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    private mutating func append(_ value: Int) {
        if value >= 0, value < 10 { return bytes.append(UInt8(ascii: "0") + UInt8(value)) }
        bytes.append(contentsOf: String(value).utf8)
    }

    private mutating func endLine() {
        bytes.append(UInt8(ascii: "\r"))
        bytes.append(UInt8(ascii: "\n"))
    }
}
