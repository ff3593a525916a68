internal import Glibc

/// Ways in which calls to the system may fail in an explored simulation; see
/// ``SimulatedHost/callsMayFail(with:atMost:)``. A `Sendable` value.
public struct CallFaults: OptionSet, Sendable, Hashable {
    /// The bits of the kinds.
    public let rawValue: UInt8

    /// Creates the kinds with the given bits.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// A write to a file writes some of the bytes. `File` writes the others with further calls. Sockets accept some of
    /// the bytes anyway, as chance decides.
    public static let shortWrites = CallFaults(rawValue: 1)
    /// A call that reads, writes, sends, receives or accepts fails with `EINTR`. RunLoopUnix calls again.
    public static let interruptions = CallFaults(rawValue: 2)
    /// A write, and a call that makes a file or a directory or renames one, fails with `ENOSPC`.
    public static let fullDisk = CallFaults(rawValue: 4)
    /// A call to the disk fails with `EIO`, and does nothing.
    public static let ioErrors = CallFaults(rawValue: 8)
    /// A connection to another host fails at both ends with `ECONNRESET`, at a call that sends or receives.
    public static let resets = CallFaults(rawValue: 16)
    /// All kinds of faults.
    public static let all: CallFaults = [.shortWrites, .interruptions, .fullDisk, .ioErrors, .resets]

    /// The kinds that make a call fail at once, each with its reason.
    static let errors: [(kind: CallFaults, reason: Int32, name: String)] = [
        (.interruptions, EINTR, "EINTR"), (.fullDisk, ENOSPC, "ENOSPC"), (.ioErrors, EIO, "EIO"),
    ]
}
