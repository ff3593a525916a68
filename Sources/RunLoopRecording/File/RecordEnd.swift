internal import Glibc

/// The end of a record, with its program or before. A `Sendable` value.
public enum RecordEnd: Sendable, Hashable, CustomStringConvertible {
    /// The program has ended, and the record is complete.
    case closed
    /// The process has ended within the recording: it was killed, has trapped, or has called `exit`. The record is
    /// complete up to then. A copy from a time when the process was still recorded looks the same.
    case processEnded
    /// The record is shorter than what was written: the file was cut, or one of its parts is missing.
    case cut
    /// The recording has reached ``RecordingOptions/limit``; the program continued.
    case limit
    /// The system had no room for more, for the given reason; the program continued.
    case noRoom(errno: Int32)
    /// The process with this number runs and is still recorded.
    case beingWritten(process: Int)
    /// The bytes of the record differ from the recorded ones, at the described place.
    case damaged(String)

    public var description: String {
        switch self {
        case .closed: "the program has ended, and the record is complete"
        case .processEnded:
            "the record was not closed: its process was killed or has exited, or the file is a copy from before the end"
        case .cut: "the record is cut: it has less than was written"
        case .limit: "the recording stopped at its limit, before the program"
        case .noRoom(let reason):
            "the recording stopped before the program: \(String(cString: strerror(reason))) (errno \(reason))"
        case .beingWritten(let process): "process \(process) is still writing the record"
        case .damaged(let place): "the record is damaged: it has other bytes than were recorded \(place)"
        }
    }
}

extension RecordEnd {
    /// The word for the end in a file; 0 is for a record under way. The upper half shows whether any bit has changed.
    var word: UInt64 {
        let code: UInt32 =
            switch self {
            case .closed: 1
            case .limit: 2
            case .noRoom(let reason): 3 | UInt32(bitPattern: reason) << 8
            default: 0
            }
        return code == 0 ? 0 : UInt64(code) | UInt64(~code) << 32
    }

    /// Creates the end from a word; `nil` for none.
    init?(word: UInt64) {
        let code = UInt32(truncatingIfNeeded: word)
        switch (code & 0xff, code == ~UInt32(truncatingIfNeeded: word >> 32)) {
        case (1, true): self = .closed
        case (2, true): self = .limit
        case (3, true): self = .noRoom(errno: Int32(code >> 8))
        default: return nil
        }
    }
}
