internal import Glibc

/// The first point of a replay at which the program's request differs from the recorded one. A `Sendable` value.
public struct Divergence: Sendable, Hashable, CustomStringConvertible {
    /// The name of the thread.
    public let thread: String
    /// The number of the event on the thread, from 0.
    public let event: UInt64
    /// The event in the record.
    public let recorded: String
    /// The program's request.
    public let asked: String

    public var description: String {
        "the replay diverges at event \(event) of \(thread): the record has \(recorded); the program asks for \(asked)"
    }
}

/// The reason why a replay ends before its program. A `Sendable` value.
public enum ReplayEnd: Sendable, Hashable, CustomStringConvertible {
    /// The record ends, for the given reason.
    case endOfRecord(RecordEnd)
    /// The replay has reached the requested event.
    case limit
    /// The record was made without the bytes that the program received, and the program reads some at the given event.
    case withoutPayload(thread: String, event: UInt64)

    public var description: String {
        switch self {
        case .endOfRecord(let end): "the replay has come to the end of the record: \(end)"
        case .limit: "the replay has come to the event that was asked for"
        case .withoutPayload(let thread, let event):
            "the replay cannot continue at event \(event) of \(thread), where the program reads: "
                + "the record has no payloads, only their lengths and digests"
        }
    }

    /// The status of a process that ends here: 0 if the record has all that was requested.
    var status: Int32 {
        switch self {
        case .limit, .endOfRecord(.closed): 0
        case .endOfRecord, .withoutPayload: EX_DATAERR
        }
    }
}
