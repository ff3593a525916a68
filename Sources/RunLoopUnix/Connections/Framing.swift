internal import Glibc
internal import RunLoopKit

/// Receive handlers that split input into messages: lines, delimited messages, and messages with a length prefix. They
/// fit wherever a connection takes a receive handler.
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
/// A message is valid during the call only. The bytes of an incomplete message wait in the connection, and each byte is
/// examined once, even if they arrive in small pieces. A message that is longer than the limit closes the connection
/// with a ``FramingError``. No message is delivered while the connection is paused or full; delivery continues
/// afterwards. If the stream ends within a message, the handlers for the end see that in ``Connection/unusedInput``.
public enum Framing {
    /// Called with a message, without its delimiter or length prefix.
    public typealias MessageHandler = (Connection, Span<UInt8>) -> Void

    /// Lines, which end with a line feed; a carriage return before it is not part of the line.
    ///
    /// - Parameters:
    ///   - limit: the most bytes that a line may have, 0 or more; 64 KiB unless given. Give the connection's
    ///     ``Connection/Limits/maximumInput`` at least as much.
    ///   - receive: called with each line.
    public static func lines(
        upTo limit: Int = 64 * 1024, _ receive: @escaping MessageHandler
    ) -> Connection.ReceiveHandler {
        requireLimit(limit)
        let newline = UInt8(ascii: "\n")
        // With room for a carriage return.
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

    /// Messages that end with a delimiter.
    ///
    /// - Parameters:
    ///   - delimiter: at least one byte.
    ///   - limit: the most bytes that a message may have, 0 or more; 64 KiB unless given.
    ///   - receive: called with each message.
    public static func delimited(
        by delimiter: [UInt8], upTo limit: Int = 64 * 1024, _ receive: @escaping MessageHandler
    ) -> Connection.ReceiveHandler {
        require(!delimiter.isEmpty, "a delimiter between messages has at least one byte")
        requireLimit(limit)
        // The position at which the search continues: no delimiter begins before it.
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

    /// The order of the bytes of a number.
    public enum ByteOrder: Sendable {
        /// The most significant byte first: network byte order.
        case bigEndian
        /// The least significant byte first.
        case littleEndian
    }

    /// Messages with a length prefix.
    ///
    /// - Parameters:
    ///   - width: the number of bytes of the length: 1 to 8.
    ///   - order: the byte order of the length; network byte order unless given.
    ///   - limit: the most bytes that a message may have, 0 or more; 64 KiB unless given.
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
        require(limit >= 0, "a message has no fewer than 0 bytes: give a limit of at least 0, not \(limit)")
    }

    /// The front of the received bytes.
    private enum Front {
        /// A message, and the index of the first byte after it.
        case message(Range<Int>, end: Int)
        case incomplete
        case tooLong(_ limit: Int)
    }

    /// Delivers one message after another, as long as the connection reads.
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
    /// The first index of a nonempty pattern, from an index on.
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
