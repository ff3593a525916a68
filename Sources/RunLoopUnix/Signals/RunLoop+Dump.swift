public import RunLoopKit

extension RunLoop {
    /// Dumps the loop whenever a signal comes: its items, their modes, and its past work.
    ///
    /// ```swift
    /// try loop.dump(on: .user1)
    /// ```
    ///
    /// After that, `kill -USR1` prints the loop's state to standard error. The next pass makes the dump, in any mode. A
    /// handler that does not return delays it; a ``/RunLoopKit/StallMonitor`` reports such a handler. The dump source
    /// lasts as long as the loop and keeps no run from finishing. Call it on the loop's thread.
    ///
    /// - Parameters:
    ///   - signal: the signal.
    ///   - report: called with the dump, on the loop's thread. Writes it to standard error as text unless given,
    ///     without waiting for a reader.
    /// - Throws: ``SignalError`` if the signal cannot be handled; ``SystemError`` if no descriptor is left.
    public func dump(
        on signal: Signal, _ report: @escaping (Dump) -> Void = RunLoop.writeToStandardError,
        file: StaticString = #fileID, line: UInt32 = #line
    ) throws {
        let source = try SignalSource(
            signal: signal, handler: { [unowned self] _ in report(dump()) }, file: file, line: line)
        source.keepsModesAlive = false
        try add(source, forMode: .every)
    }

    /// Writes a dump to standard error as text. A separate thread writes the text that standard error does not accept
    /// at once, so that the caller does not wait for a reader. Text that is unwritten when the process ends is lost.
    /// Any thread.
    public static func writeToStandardError(_ dump: Dump) {
        StandardError.shared.write("\(dump)\n")
    }
}
