public import RunLoopKit

extension RunLoop {
    /// Dumps the loop whenever a signal comes: what it waits for, in which modes, and what it has done.
    ///
    /// ```swift
    /// try loop.dump(on: .user1)
    /// ```
    ///
    /// After that, `kill -USR1` prints the loop's state to standard error. The dump is made in the next pass, in
    /// whatever mode that is. A handler that does not return delays it; a ``/RunLoopKit/StallMonitor`` reports such a
    /// handler. The dump lasts as long as the loop and keeps no run from finishing. Call it on the loop's thread.
    ///
    /// - Parameters:
    ///   - signal: the signal.
    ///   - report: what to do with the dump, on the loop's thread. Writes it to standard error as text unless given,
    ///     without waiting for whoever reads that.
    /// - Throws: ``SignalError`` if the signal cannot be handled; ``SystemError`` if there is no descriptor left.
    public func dump(
        on signal: Signal, _ report: @escaping (Dump) -> Void = RunLoop.writeToStandardError,
        file: StaticString = #fileID,
        line: UInt32 = #line
    ) throws {
        let source = try SignalSource(
            signal: signal, handler: { [unowned self] _ in report(dump()) }, file: file, line: line)
        source.keepsModesAlive = false
        try add(source, forMode: .every)
    }

    /// Writes a dump to standard error as text. What standard error does not take at once is written by a thread of its
    /// own, so that nobody else waits for a reader; what a process has not written when it ends is lost. Any thread.
    public static func writeToStandardError(_ dump: Dump) {
        StandardError.shared.write("\(dump)\n")
    }
}
