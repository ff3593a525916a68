internal import Glibc

extension ChildProcess {
    /// The program that a child runs.
    public enum Executable: Hashable, Sendable, CustomStringConvertible {
        /// The path of a file; a relative path starts at the child's working directory.
        case path(String)
        /// A name to search for in the directories of this process's `PATH`.
        case named(String)

        public var description: String {
            switch self {
            case .path(let text), .named(let text): text
            }
        }
    }

    /// A child's environment variables.
    public enum Environment: Hashable, Sendable {
        /// The variables of this process.
        case inherit
        /// The variables of this process with these changes: `nil` removes a variable.
        case updating([String: String?])
        /// Exactly these variables.
        case only([String: String])
    }

    /// A target for one of a child's standard descriptors.
    public enum Stream: Hashable, Sendable {
        /// This process's descriptor.
        case inherit
        /// `/dev/null`: input is empty, and output is discarded.
        case null
        /// A pipe whose other end is a ``PipeEnd`` of the ``ChildProcess``.
        case pipe
        /// An open descriptor of this process, which is neither changed nor closed, and must stay open until `spawn`
        /// has returned.
        case descriptor(Int32)
        /// The child's standard output, as with `2>&1` in a shell; only for its standard error. Output and errors
        /// arrive in the order in which the child writes them.
        case standardOutput
    }

    /// The process group and session of a child. The terminal's signals, such as Control-C, go to a group. A child in
    /// its own group can be ended together with the processes that it started.
    public enum Group: Hashable, Sendable {
        /// This process's group and session.
        case inherit
        /// A new group, with the child's number.
        case newGroup
        /// A new session, without a terminal.
        case newSession
    }

    /// The user and groups that a child runs as. Only privileged processes may choose them.
    public struct User: Hashable, Sendable, CustomStringConvertible {
        /// The user's number.
        public let identifier: UInt32
        /// The number of the user's primary group.
        public let group: UInt32
        /// The numbers of further groups.
        public let supplementaryGroups: [UInt32]

        /// Creates a user from numbers, by default without further groups.
        public init(_ identifier: UInt32, group: UInt32, supplementaryGroups: [UInt32] = []) {
            (self.identifier, self.group) = (identifier, group)
            self.supplementaryGroups = supplementaryGroups
        }

        public var description: String { "user \(identifier), group \(group)" }
    }

    /// A resource that the system can limit for a process. Descendants of a child inherit its limits, each for itself.
    public enum Resource: Hashable, Sendable, CaseIterable {
        /// The processor time in seconds. The system ends a process that has used it up.
        case processorTime
        /// The size in bytes of each file that the process writes.
        case fileSize
        /// The size in bytes of a core dump; 0 for none.
        case coreSize
        /// The size in bytes of the process's data segment.
        case dataSize
        /// The size in bytes of the main thread's stack.
        case stackSize
        /// The size in bytes of the address space, including all mappings.
        case addressSpace
        /// The number of bytes of memory that the process may lock.
        case lockedMemory
        /// The number of descriptors that the process may have open; all descriptors are below this number.
        case openFiles
        /// The number of processes of the same user, including processes that it did not start.
        case processes

        var number: Int32 {
            switch self {
            case .processorTime: Int32(RLIMIT_CPU.rawValue)
            case .fileSize: Int32(RLIMIT_FSIZE.rawValue)
            case .coreSize: Int32(RLIMIT_CORE.rawValue)
            case .dataSize: Int32(RLIMIT_DATA.rawValue)
            case .stackSize: Int32(RLIMIT_STACK.rawValue)
            case .addressSpace: Int32(RLIMIT_AS.rawValue)
            case .lockedMemory: Int32(__RLIMIT_MEMLOCK.rawValue)
            case .openFiles: Int32(RLIMIT_NOFILE.rawValue)
            case .processes: Int32(__RLIMIT_NPROC.rawValue)
            }
        }
    }
}
