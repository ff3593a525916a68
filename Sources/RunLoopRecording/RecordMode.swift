internal import RunLoopCore

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

/// Runs `body`, recorded or replayed if that is asked for.
///
/// - Parameters:
///   - mode: whether it is.
///   - body: called once, on this thread, whose loop is `RunLoop.current`. Without a recording that loop is not made before
///     `body` asks for it, so that a daemon may look at the sockets of its service manager first.
/// - Throws: ``RecordError``; the error of `body`.
@available(*, noasync, message: "a recording takes the place of the thread's loop; call it from a synchronous function")
public func withRecord<Result>(_ mode: RecordMode, _ body: () throws -> Result) throws -> Result {
    switch mode {
    case .none: try body()
    case .record(let path, let options): try withRecording(to: path, options: options) { _ in try body() }
    case .replay(let path, let options): try withReplay(of: path, options: options) { _ in try body() }
    }
}
