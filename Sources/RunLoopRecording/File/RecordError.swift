internal import Glibc

/// The reason why a run cannot be recorded or replayed. `Sendable`.
public enum RecordError: Error, Sendable, Hashable, CustomStringConvertible {
    /// A file cannot be written or read; the number is the system's reason.
    case file(String, errno: Int32)
    /// The file is no record, or one of another version.
    case notARecord(String)
    /// The process hashes with other seeds than the recorded one, and could not be started again with those.
    case hashing(errno: Int32)

    public var description: String {
        switch self {
        case .file(let path, let reason): "\(path): \(String(cString: strerror(reason))) (errno \(reason))"
        case .notARecord(let path): "\(path) is no record of a run, or one that another version of RunLoopKit has made"
        case .hashing(let reason):
            "the program could not be executed again with the recorded seeds of hashing: "
                + "\(String(cString: strerror(reason))) (errno \(reason))"
        }
    }
}
