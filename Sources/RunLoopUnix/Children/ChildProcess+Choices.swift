extension ChildProcess {
    /// The program that a child runs.
    public enum Executable: Hashable, Sendable, CustomStringConvertible {
        /// A file. A relative path is taken from the child's working directory.
        case path(String)
        /// A name that is looked for in the directories of this process's `PATH`.
        case named(String)

        public var description: String {
            switch self {
            case .path(let text), .named(let text): text
            }
        }
    }

    /// A child's environment variables.
    public enum Environment: Hashable, Sendable {
        /// Those of this process.
        case inherit
        /// These and no others.
        case only([String: String])
    }

    /// What one of a child's standard descriptors is.
    public enum Stream: Hashable, Sendable {
        /// What it is in this process.
        case inherit
        /// `/dev/null`: nothing to read, and what is written is gone.
        case null
        /// A pipe, whose other end is a ``PipeEnd`` of the ``ChildProcess``.
        case pipe
        /// An open descriptor of this process. It is neither changed nor closed, and only has to be open until `spawn`
        /// has returned.
        case descriptor(Int32)
    }

    /// Which process group and session a child is in. Signals of the terminal, such as Control-C, go to a group.
    public enum Group: Hashable, Sendable {
        /// Those of this process.
        case inherit
        /// A group of its own, with the child's number.
        case newGroup
        /// A session of its own, without a terminal.
        case newSession
    }
}
