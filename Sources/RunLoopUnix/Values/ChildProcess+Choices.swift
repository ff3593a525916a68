internal import Glibc

extension ChildProcess {
    /// The program that a child runs.
    public enum Executable: Hashable, Sendable, CustomStringConvertible {
        /// A file. The child's working directory is the base of a relative path.
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

    /// The target of one of a child's standard descriptors.
    public enum Stream: Hashable, Sendable {
        /// This process's own.
        case inherit
        /// `/dev/null`: input is empty, and output is discarded.
        case null
        /// A pipe whose other end is a ``PipeEnd`` of the ``ChildProcess``.
        case pipe
        /// An open descriptor of this process. It is neither changed nor closed. It must stay open until `spawn` has
        /// returned.
        case descriptor(Int32)
        /// The child's standard output, as `2>&1` in a shell: for its standard error only. Output and errors arrive in
        /// the order in which the child writes them.
        case standardOutput
    }

    /// The process group and session of a child. Signals of the terminal, such as Control-C, go to a group. A child
    /// with a group of its own can be ended together with the processes that it started.
    public enum Group: Hashable, Sendable {
        /// This process's own.
        case inherit
        /// A group of its own, with the child's number.
        case newGroup
        /// A session of its own, without a terminal.
        case newSession
    }

    /// The user that a child runs as, and its groups. Only root and processes with its rights may choose them.
    public struct User: Hashable, Sendable, CustomStringConvertible {
        /// The number of the user.
        public let identifier: UInt32
        /// The number of the user's group.
        public let group: UInt32
        /// The numbers of further groups.
        public let supplementaryGroups: [UInt32]

        /// A user by numbers, in no further groups unless given.
        public init(_ identifier: UInt32, group: UInt32, supplementaryGroups: [UInt32] = []) {
            (self.identifier, self.group) = (identifier, group)
            self.supplementaryGroups = supplementaryGroups
        }

        public var description: String { "user \(identifier), group \(group)" }
    }

    /// A resource that the system can limit for a process. Children of the child have the same limits, each for itself.
    public enum Resource: Hashable, Sendable, CaseIterable {
        /// Seconds of a processor's time. The system ends the process when it has used them.
        case processorTime
        /// Bytes of a file that it writes.
        case fileSize
        /// Bytes of a core dump; 0 for none.
        case coreSize
        /// Bytes of its data.
        case dataSize
        /// Bytes of its main thread's stack.
        case stackSize
        /// Bytes of its memory, including all mappings.
        case addressSpace
        /// Bytes of memory that it may lock.
        case lockedMemory
        /// Descriptors that it may have open: their numbers are below this.
        case openFiles
        /// Processes of its user, including those that it did not start.
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
