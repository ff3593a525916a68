@_spi(Ports) internal import RunLoopCore

/// The mode of a run: recorded, replayed or neither. `Sendable`.
public enum RecordMode: Sendable {
    /// The run is neither recorded nor replayed.
    case none
    /// The run is recorded; see ``withRecording(to:options:_:)``.
    case record(to: String, RecordingOptions = RecordingOptions())
    /// The run is replayed; see ``withReplay(of:options:_:)``.
    case replay(of: String, ReplayOptions = ReplayOptions())

    /// Creates the mode for the options `--record FILE`, `--replay FILE` and `--until EVENT` of a program.
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

/// Runs `body`, recorded or replayed as `mode` says.
///
/// - Parameters:
///   - mode: recorded, replayed or neither.
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
