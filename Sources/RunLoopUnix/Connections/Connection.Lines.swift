internal import Glibc
internal import RunLoopKit

extension Connection {
    /// What comes, line by line, of a connection for tasks. Iterate on the loop's thread.
    ///
    /// ```swift
    /// for try await line in connection.lines() { print(line) }
    /// ```
    ///
    /// A line ends with a line feed; a carriage return before it is not part of the line. What comes after the last line
    /// feed is the last line, if it is not empty. Each line is taken when it is asked for: what follows it stays in the
    /// connection, for other reads and for another iteration. A wait that is cancelled takes nothing. Bytes that are not
    /// UTF-8 become U+FFFD; where they matter, use ``receive(_:)``. O(bytes), and one allocation a line.
    ///
    /// The end of the stream ends the iteration and, as ``read(atMost:)`` says, closes the connection.
    ///
    /// An iteration throws what ``read(atMost:)`` throws, and ``FramingError`` at a line that is too long. That line is
    /// not taken, and the connection stays open.
    ///
    /// - Parameter limit: the most bytes that a line may have, 0 or more; 64 KiB unless given.
    public func lines(upTo limit: Int = 64 * 1024) -> Lines {
        require(waits != nil, "a connection with a receive handler is not awaited; make it without the handler")
        require(limit >= 0, "a line has no fewer than 0 bytes: give a limit of at least 0, not \(limit)")
        return Lines(connection: self, limit: limit)
    }

    /// The lines that come over a connection; see ``Connection/lines(upTo:)``. It belongs to the loop's thread and is not
    /// `Sendable`.
    public struct Lines: AsyncSequence {
        let connection: Connection
        let limit: Int

        /// An iteration, which begins with what has not been used yet.
        public func makeAsyncIterator() -> AsyncIterator {
            AsyncIterator(connection: connection, limit: limit)
        }

        /// An iteration over lines. It belongs to the loop's thread and is not `Sendable`.
        public struct AsyncIterator: AsyncIteratorProtocol {
            let connection: Connection
            let limit: Int

            /// Waits for the next line; `nil` when the stream has ended. On the loop's thread.
            ///
            /// - Throws: as ``Connection/read(atMost:)``, and ``FramingError``.
            public mutating func next(isolation: isolated (any Actor)? = #isolation) async throws -> String? {
                require(
                    connection.loop.isInstalled,
                    "lines are awaited on the loop's thread: in a task of the loop, or in one that prefers its executor"
                )
                var searched = 0
                while let isThere = try connection.asksForInput(beyond: searched) {
                    guard isThere else {
                        if let waits = connection.waits { try await connection.waitForInput(waits) }
                        continue
                    }
                    if let line = try connection.takeLine(upTo: limit, after: searched) { return line }
                    searched = connection.unusedInput
                }
                return try connection.takeRest(upTo: limit)
            }
        }
    }

    /// Takes the first line from what is there; `nil` if there is no whole one.
    ///
    /// - Parameter searched: how many of the bytes have no line feed.
    fileprivate func takeLine(upTo limit: Int, after searched: Int) throws -> String? {
        let line: String? = try useInput(seesAll: false) { bytes in
            guard let found = memchr(bytes.baseAddress! + searched, 0x0A, bytes.count - searched) else {
                // With room for a carriage return.
                guard bytes.count - 1 <= limit else { throw FramingError.tooLong(limit: limit) }
                return (0, nil)
            }
            let end = UnsafeRawPointer(found) - bytes.baseAddress!
            let count = end > 0 && bytes[end - 1] == 0x0D ? end - 1 : end
            guard count <= limit else { throw FramingError.tooLong(limit: limit) }
            return (end + 1, String(decoding: bytes[..<count], as: UTF8.self))
        }
        // What follows a line has not been shown.
        if line != nil { waits?.seen = 0 }
        return line
    }

    /// Takes what is there after the last line feed; `nil` if there is nothing.
    fileprivate func takeRest(upTo limit: Int) throws -> String? {
        guard unusedInput > 0 else { return nil }
        guard unusedInput <= limit else { throw FramingError.tooLong(limit: limit) }
        return useInput(seesAll: false) { ($0.count, String(decoding: $0, as: UTF8.self)) }
    }
}

@available(*, unavailable, message: "lines belong to the thread of the connection's loop")
extension Connection.Lines: Sendable {}

@available(*, unavailable, message: "an iteration belongs to the thread of the connection's loop")
extension Connection.Lines.AsyncIterator: Sendable {}
