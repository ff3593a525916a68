extension ChildProcess {
    /// The program that a child runs.
    public enum Executable: Hashable, Sendable, CustomStringConvertible {
        /// A file. The child's working directory is the base of a relative path.
        case path(String)
        /// A name to be found in the directories of this process's `PATH`.
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
        /// Exactly these.
        case only([String: String])
    }

    /// What one of a child's standard descriptors is.
    public enum Stream: Hashable, Sendable {
        /// The same as in this process.
        case inherit
        /// `/dev/null`: there is nothing to read, and what is written is lost.
        case null
        /// A pipe, whose other end is a ``PipeEnd`` of the ``ChildProcess``.
        case pipe
        /// An open descriptor of this process. It is neither changed nor closed. It must stay open until `spawn` has
        /// returned.
        case descriptor(Int32)
    }

    /// Which process group and session a child is in. Signals of the terminal, such as Control-C, go to a group.
    public enum Group: Hashable, Sendable {
        /// The same as this process.
        case inherit
        /// A group of its own, with the child's number.
        case newGroup
        /// A session of its own, without a terminal.
        case newSession
    }
}
