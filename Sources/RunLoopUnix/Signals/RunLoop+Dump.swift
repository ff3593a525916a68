internal import Glibc
public import RunLoopKit

extension RunLoop {
    /// Has a signal dump the loop: what it waits for, in which modes, and what it has done.
    ///
    /// ```swift
    /// try loop.dump(on: .user1)
    /// ```
    ///
    /// Then `kill -USR1` shows on standard error what the loop is at. The dump is made in the pass after the signal, in
    /// whatever mode that is; of a handler that does not return a ``RunLoopCore/StallMonitor`` tells. It lasts as long
    /// as the loop, and keeps no run from finishing. On the loop's thread.
    ///
    /// - Parameters:
    ///   - signal: the signal.
    ///   - report: what to do with the dump, on the loop's thread; unless given, it is written to standard error as text.
    /// - Throws: ``SignalError`` for a signal that cannot be handled; ``SystemError`` if there is no descriptor left.
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

    /// Writes a dump to standard error, as text.
    public static func writeToStandardError(_ dump: Dump) {
        var rest = "\(dump)\n".utf8[...]
        while !rest.isEmpty {
            let count = rest.withContiguousStorageIfAvailable { write(STDERR_FILENO, $0.baseAddress, $0.count) } ?? -1
            guard count > 0 || errno == EINTR else { return }
            rest = rest.dropFirst(max(0, count))
        }
    }
}
