public import RunLoopCore
internal import RunLoopKit

/// Whether a program is recorded or replayed, as its options say. `Sendable`.
public enum RecordMode: Sendable {
    /// Neither.
    case none
    /// See ``withRecording(to:options:_:)``.
    case record(to: String, RecordingOptions = RecordingOptions())
    /// See ``withReplay(of:options:_:)``.
    case replay(of: String, ReplayOptions = ReplayOptions())

    /// The mode that follows from the options `--record FILE`, `--replay FILE` and `--until EVENT` of a program.
    ///
    /// - Precondition: not both files are given.
    public init(record: String?, replay: String?, until: ReplayOptions.Position? = nil) {
        require(record == nil || replay == nil, "a run is recorded or replayed; give one of the two files")
        if let record {
            self = .record(to: record)
        } else if let replay {
            var options = ReplayOptions()
            options.until = until
            self = .replay(of: replay, options)
        } else {
            self = .none
        }
    }
}

/// Runs `body` with the thread's loop, recorded or replayed if that is asked for.
///
/// - Parameters:
///   - mode: whether it is.
///   - body: called once, on this thread, with the loop.
/// - Throws: ``RecordError``; the error of `body`.
@available(*, noasync, message: "a recording takes the place of the thread's loop; call it from a synchronous function")
public func withRecord<Result>(_ mode: RecordMode, _ body: (RunLoop) throws -> Result) throws -> Result {
    switch mode {
    case .none: try body(.current)
    case .record(let path, let options): try withRecording(to: path, options: options, body)
    case .replay(let path, let options): try withReplay(of: path, options: options, body)
    }
}
