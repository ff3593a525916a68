public import ArgumentParser
public import RunLoopRecording

/// The options of a daemon that can be recorded and replayed.
public struct RecordOptions: ParsableArguments, Sendable {
    @Option(help: "A file in which the run is recorded.")
    public var record: String?

    @Option(help: "The record of a run, which the program repeats.")
    public var replay: String?

    @Option(help: "The event before which a replay ends, for example 1234, or 2:1234 on the third thread.")
    public var until: ReplayOptions.Position?

    public init() {}

    public func validate() throws {
        guard record == nil || replay == nil else { throw ValidationError("give --record or --replay, not both") }
        guard until == nil || replay != nil else { throw ValidationError("--until belongs to --replay") }
    }

    public var mode: RecordMode { RecordMode(record: record, replay: replay, until: until) }
}

extension ReplayOptions.Position: @retroactive ExpressibleByArgument {}
