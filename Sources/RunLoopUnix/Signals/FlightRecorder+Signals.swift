public import RunLoopKit

extension FlightRecorder.Memory {
    /// Writes the flight to a file whenever a signal arrives.
    ///
    /// ```swift
    /// try recorder.memory.write(to: "/var/lib/daemon/flight", on: .user2, in: loop)
    /// ```
    ///
    /// The next pass of the loop, in any mode, writes the flight and replaces the file. A handler that does not return
    /// delays that; a recorder created with a path then still has its own file. The signal source lasts as long as the
    /// loop and keeps no run from finishing. Call it on the loop's thread.
    ///
    /// - Parameters:
    ///   - path: the file.
    ///   - signal: the signal.
    ///   - loop: the loop that receives the signal, which need not be the recorded one.
    ///   - done: called with the error, or `nil`, after the file has been written; by default, errors go to standard
    ///     error.
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
