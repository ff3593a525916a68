public import RunLoopKit

extension RunLoop {
    /// Dumps the loop's items, their modes and its past work whenever a signal arrives.
    ///
    /// ```swift
    /// try loop.dump(on: .user1)
    /// ```
    ///
    /// Afterwards, `kill -USR1` prints the loop's state to standard error. The next pass, in any mode, makes the dump.
    /// A handler that does not return delays the dump; a ``/RunLoopKit/StallMonitor`` reports such a handler. The dump
    /// source lasts as long as the loop and keeps no run from finishing. Call it on the loop's thread.
    ///
    /// - Parameters:
    ///   - signal: the signal.
    ///   - report: called with the dump, on the loop's thread; by default, writes it to standard error as text without
    ///     waiting for a reader.
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

    /// Writes a dump to standard error as text. A separate thread writes text that standard error does not accept at
    /// once, so the caller never waits for a reader. Unwritten text is lost when the process ends. Any thread.
    public static func writeToStandardError(_ dump: Dump) {
        StandardError.shared.write("\(dump)\n")
    }
}
