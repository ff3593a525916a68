internal import Glibc

/// The reason why a run cannot be recorded or replayed. `Sendable`.
public enum RecordError: Error, Sendable, Hashable, CustomStringConvertible {
    /// A file cannot be written or read; the number is the system's reason.
    case file(String, errno: Int32)
    /// The file is no record, or a record of another version.
    case notARecord(String)
    /// The bytes of the file differ from the recorded ones, at the described place.
    case damaged(String, place: String)
    /// The record does not have the thread at which to end the replay, only the listed ones.
    case noThread(Int, threads: [Int])
    /// The thread does not have the event before which to end the replay, only the given number of events.
    case noEvent(ReplayOptions.Position, count: UInt64)
    /// The process hashes with other seeds than the recorded one, and could not be started again with the recorded
    /// ones.
    case hashing(errno: Int32)

    public var description: String {
        switch self {
        case .file(let path, let reason): "\(path): \(String(cString: strerror(reason))) (errno \(reason))"
        case .notARecord(let path): "\(path) is not a record of a run, or was made by another version of RunLoopKit"
        case .damaged(let path, let place): "\(path): \(RecordEnd.damaged(place))"
        case .noThread(let thread, let threads):
            "the record has no thread \(thread); it has \(threads.map { "\($0)" }.joined(separator: ", "))"
        case .noEvent(let position, let count):
            "the record has no event \(position.event) of thread \(position.thread), which has \(count) events"
        case .hashing(let reason):
            "the program could not be executed again with the recorded seeds of hashing: "
                + "\(String(cString: strerror(reason))) (errno \(reason))"
        }
    }
}
