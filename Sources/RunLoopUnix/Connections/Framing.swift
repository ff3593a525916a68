internal import Glibc
@_spi(Ports) internal import RunLoopKit

/// Receive handlers for connections that split input into messages: lines, delimited messages, and messages with a
/// length prefix.
///
/// ```swift
/// let connection = Connection(
///     adopting: descriptor, on: loop,
///     receive: Framing.lines(upTo: 8192) { connection, line in
///         connection.write(line)
///         connection.write("\n")
///     })
/// ```
///
/// A message is valid only during the call. The bytes of an incomplete message wait in the connection, and each byte is
/// examined once, even if bytes arrive in small pieces. A message longer than the limit closes the connection with a
/// ``FramingError``. No message is delivered while the connection is paused or full; delivery continues afterwards. If
/// the stream ends within a message, the handlers for the end see its bytes in ``Connection/unusedInput``.
public enum Framing {
    /// A closure that receives a message without its delimiter or length prefix.
    public typealias MessageHandler = (Connection, Span<UInt8>) -> Void

    /// Returns a handler for lines, which end with a line feed; a carriage return before the line feed is not part of
    /// the line.
    ///
    /// - Parameters:
    ///   - limit: the maximum number of bytes of a line, 0 or more; by default 64 KiB. The connection's
    ///     ``Connection/Limits/maximumInput`` should be at least as large.
    ///   - receive: called with each line.
    public static func lines(
        upTo limit: Int = 64 * 1024, _ receive: @escaping MessageHandler
    ) -> Connection.ReceiveHandler {
        requireLimit(limit)
        let newline = UInt8(ascii: "\n")
        // Leaves room for a carriage return.
        return delimited(by: [newline], upTo: max(limit, limit &+ 1)) { connection, line in
            let hasReturn = !line.isEmpty && line[line.count - 1] == UInt8(ascii: "\r")
            let text = line.extracting(droppingLast: hasReturn ? 1 : 0)
            if text.count > limit {
                connection.fail(FramingError.tooLong(limit: limit))
            } else {
                receive(connection, text)
            }
        }
    }

    /// Returns a handler for messages that end with a delimiter.
    ///
    /// - Parameters:
    ///   - delimiter: at least one byte.
    ///   - limit: the maximum number of bytes of a message, 0 or more; by default 64 KiB.
    ///   - receive: called with each message.
    public static func delimited(
        by delimiter: [UInt8], upTo limit: Int = 64 * 1024, _ receive: @escaping MessageHandler
    ) -> Connection.ReceiveHandler {
        require(!delimiter.isEmpty, "a delimiter between messages has at least one byte")
        requireLimit(limit)
        // The position at which the search continues; no delimiter begins before it.
        var searched = 0
        return cut(receive) { bytes in
            if let start = bytes.firstIndex(of: delimiter, from: searched) {
                searched = 0
                return start > limit ? .tooLong(limit) : .message(0..<start, end: start + delimiter.count)
            }
            searched = max(0, bytes.count - delimiter.count + 1)
            return searched > limit ? .tooLong(limit) : .incomplete
        }
    }

    /// The byte order of a number.
    public enum ByteOrder: Sendable {
        /// The most significant byte first, the network byte order.
        case bigEndian
        /// The least significant byte first.
        case littleEndian
    }

    /// Returns a handler for messages with a length prefix.
    ///
    /// - Parameters:
    ///   - width: the number of bytes of the length: 1 to 8.
    ///   - order: the byte order of the length; by default the network byte order.
    ///   - limit: the maximum number of bytes of a message, 0 or more; by default 64 KiB.
    ///   - receive: called with each message.
    public static func lengthPrefixed(
        width: Int, order: ByteOrder = .bigEndian, upTo limit: Int = 64 * 1024, _ receive: @escaping MessageHandler
    ) -> Connection.ReceiveHandler {
        require((1...8).contains(width), "a length has 1 to 8 bytes, not \(width)")
        requireLimit(limit)
        return cut(receive) { bytes in
            guard bytes.count >= width else { return .incomplete }
            let digits = bytes.prefix(width)
            let length = (order == .bigEndian ? Array(digits) : digits.reversed()).reduce(UInt64(0)) {
                $0 << 8 | UInt64($1)
            }
            guard length <= UInt64(limit) else { return .tooLong(limit) }
            guard bytes.count - width >= length else { return .incomplete }
            let end = width + Int(length)
            return .message(width..<end, end: end)
        }
    }

    private static func requireLimit(_ limit: Int) {
        require(limit >= 0, "the limit for a message is at least 0 bytes, not \(limit)")
    }

    /// The front of the received bytes.
    private enum Front {
        /// A message, and the index of the first byte after it.
        case message(Range<Int>, end: Int)
        case incomplete
        case tooLong(_ limit: Int)
    }

    /// Delivers messages one after another while the connection reads.
    private static func cut(
        _ receive: @escaping MessageHandler, _ front: @escaping (UnsafeBufferPointer<UInt8>) -> Front
    ) -> Connection.ReceiveHandler {
        return { connection, bytes in
            var used = 0
            while connection.isOpen {
                guard connection.machine.mayOfferMore else {
                    connection.receiveAgain()
                    return used
                }
                let rest = bytes.extracting(used...)
                switch rest.withUnsafeBufferPointer(front) {
                case .message(let message, let end):
                    assert(
                        message.upperBound <= end && end > 0 && end <= rest.count, "a message is not within the input")
                    used += end
                    receive(connection, rest.extracting(message))
                case .incomplete: return used
                case .tooLong(let limit): connection.fail(FramingError.tooLong(limit: limit))
                }
            }
            return used
        }
    }
}

/// An invalid message of a ``Framing``.
public enum FramingError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The message is longer than its limit.
    case tooLong(limit: Int)

    public var description: String {
        switch self {
        case .tooLong(let limit): "a message is longer than \(limit) bytes"
        }
    }
}

extension UnsafeBufferPointer<UInt8> {
    /// Returns the first index of a nonempty pattern at or after `start`.
    fileprivate func firstIndex(of pattern: [UInt8], from start: Int) -> Int? {
        var start = start
        while start + pattern.count <= count {
            let room = count - start - pattern.count + 1
            guard let found = memchr(baseAddress! + start, Int32(pattern[0]), room) else { return nil }
            start = UnsafeRawPointer(found) - UnsafeRawPointer(baseAddress!)
            if memcmp(found, pattern, pattern.count) == 0 { return start }
            start += 1
        }
        return nil
    }
}
