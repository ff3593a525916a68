internal import Glibc
@_spi(Ports) public import RunLoopKit

extension Connection {
    /// Returns a sequence of the lines of the connection's input, for tasks. Iterate on the loop's thread.
    ///
    /// ```swift
    /// for try await line in connection.lines() { print(line) }
    /// ```
    ///
    /// A line ends with a line feed; a carriage return before the line feed is not part of the line. Any text after the
    /// last line feed is the last line. Each line is consumed when it is requested; later bytes stay in the connection,
    /// for other reads and iterations. A cancelled wait consumes nothing. Bytes that are not UTF-8 become U+FFFD; where
    /// they matter, use ``receive(_:)``. O(bytes), and one allocation per line.
    ///
    /// The end of the stream ends the iteration and closes the connection, as with ``read(atMost:)``.
    ///
    /// An iteration throws the errors of ``read(atMost:)``, and ``FramingError`` at a line that is too long, which is
    /// not consumed; the connection stays open.
    ///
    /// - Parameter limit: the maximum number of bytes of a line, 0 or more; by default 64 KiB.
    public func lines(upTo limit: Int = 64 * 1024) -> Lines {
        require(machine.isForTasks, "a connection with a receive handler is not awaited; make it without the handler")
        require(limit >= 0, "the limit for a line is at least 0 bytes, not \(limit)")
        return Lines { [self] in try await nextLine(upTo: limit) }
    }

    /// A sequence of the lines of a connection's input; see ``Connection/lines(upTo:)``. An iteration begins with the
    /// unused input.
    public typealias Lines = RunLoop.TaskSequence<String>

    private nonisolated(nonsending) func nextLine(upTo limit: Int) async throws -> String? {
        guard let waits = checkedWaits else { throw await loop.remote.endErrorAfterTurn() }
        var searched = 0
        while let isThere = try asksForInput(waits, beyond: searched) {
            guard isThere else {
                try await waitForInput(waits)
                continue
            }
            if let line = try takeLine(upTo: limit, after: searched) { return line }
            searched = unusedInput
        }
        return try takeRest(upTo: limit)
    }

    /// Takes the first line from the available input; `nil` if no line is complete.
    ///
    /// - Parameter searched: the number of bytes known to contain no line feed.
    private func takeLine(upTo limit: Int, after searched: Int) throws -> String? {
        let line: String? = try useInput(seesAll: false) { bytes in
            guard let found = memchr(bytes.baseAddress! + searched, 0x0A, bytes.count - searched) else {
                // Leaves room for a carriage return.
                guard bytes.count - 1 <= limit else { throw FramingError.tooLong(limit: limit) }
                return (0, nil)
            }
            let end = UnsafeRawPointer(found) - bytes.baseAddress!
            let count = end > 0 && bytes[end - 1] == 0x0D ? end - 1 : end
            guard count <= limit else { throw FramingError.tooLong(limit: limit) }
            return (end + 1, String(decoding: bytes[..<count], as: UTF8.self))
        }
        // The task has not seen the bytes after the line.
        if line != nil { waits?.seen = 0 }
        return line
    }

    /// Takes the bytes after the last line feed; `nil` if there are none.
    private func takeRest(upTo limit: Int) throws -> String? {
        guard unusedInput > 0 else { return nil }
        guard unusedInput <= limit else { throw FramingError.tooLong(limit: limit) }
        return useInput(seesAll: false) { ($0.count, String(decoding: $0, as: UTF8.self)) }
    }
}
