/// How much of a run is recorded, and where it stops. A `Sendable` value.
public struct RecordingOptions: Sendable, Hashable {
    /// The most bytes of the record, all parts together. At the limit the recording stops; the program continues, and a
    /// line on standard error says so.
    public var limit = Int.max
    /// The most bytes of a file. Further parts are `PATH.2`, `PATH.3` and so on. A replay needs all parts.
    public var partSize = Int.max
    /// Whether the bytes that the program receives and reads are kept. Without them the record has their lengths and digests:
    /// it shows what happened, and a replay ends where the program reads.
    public var keepsPayloads = true

    /// Whether the bytes that the program sends and writes are kept, too. A replay needs only their digests; a changed program is
    /// compared with them, see ``RecordedClient``.
    public var keepsOutput = false

    /// Everything that a replay needs, without a limit.
    public init() {}

    /// The bytes of a chunk: the memory that each thread has of the record.
    package var chunkSize = 64 * 1024
}
