/// The lines that members and clients exchange.
enum Line {
    /// The largest number of bytes in a key or a value.
    static let longestWord = 1024
    /// The largest number of bytes in a line, with room for a message with all entries of a batch.
    static let longest = 512 * 1024

    static func text(_ line: Span<UInt8>) -> String {
        line.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
    }
}
