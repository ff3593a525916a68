/// The contents and the limits of a record. A `Sendable` value.
public struct RecordingOptions: Sendable, Hashable {
    /// The largest number of bytes in the record, all parts together. At the limit the recording stops; the program
    /// continues, and a line on standard error says so.
    public var limit = Int.max
    /// The largest number of bytes in a file. Further parts are `PATH.2`, `PATH.3` and so on. A replay needs all parts.
    public var partSize = Int.max
    /// A Boolean value that indicates whether the bytes that the program receives and reads are kept. Otherwise the
    /// record has their lengths and digests, which show what happened, and a replay ends where the program reads.
    public var keepsPayloads = true

    /// A Boolean value that indicates whether the bytes that the program sends and writes are kept, too. A replay needs
    /// only their digests; the answers of a changed program are compared with the bytes, see ``RecordedClient``.
    public var keepsOutput = false

    /// Creates options for a record with everything that a replay needs, without a limit.
    public init() {}

    /// The number of bytes in a chunk: each thread's memory of the record.
    var chunkSize = 64 * 1024
}
