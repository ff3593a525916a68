public import RunLoopKit

extension FlightRecorder.Memory {
    /// Writes the flight to a file whenever a signal comes.
    ///
    /// ```swift
    /// try recorder.memory.write(to: "/var/lib/daemon/flight", on: .user2, in: loop)
    /// ```
    ///
    /// The next pass of the loop writes it, in any mode, and replaces the file. A handler that does not return delays it;
    /// a recorder that was given a path has the file then. Lasts as long as the loop and keeps no run from finishing. Call
    /// it on the loop's thread.
    ///
    /// - Parameters:
    ///   - path: the file.
    ///   - signal: the signal.
    ///   - loop: the loop that takes the signal, perhaps another one than is recorded.
    ///   - done: called with the error, or `nil`, when the file has been written; an error goes to standard error unless
    ///     given.
    /// - Throws: ``SignalError`` if the signal cannot be handled; ``SystemError`` if no descriptor is left.
    public func write(
        to path: String, on signal: Signal, in loop: RunLoop, done: ((FlightError?) -> Void)? = nil,
        file: StaticString = #fileID, line: UInt32 = #line
    ) throws {
        let source = try SignalSource(
            signal: signal,
            handler: { _ in
                do throws(FlightError) {
                    try write(to: path)
                    done?(nil)
                } catch {
                    if let done { done(error) } else { StandardError.shared.write("\(error)\n") }
                }
            }, file: file, line: line)
        source.keepsModesAlive = false
        try loop.add(source, forMode: .every)
    }
}
