extension RunLoop {
    /// The name of a mode that a loop can run in.
    ///
    /// A mode is only a name: it exists once something is scheduled in it, and it never goes away. Equal names are the
    /// same mode in every loop. ``Modes-swift.struct/common`` is not a `Mode`, because no loop can run in it. Methods
    /// that schedule items take ``Modes-swift.struct``.
    ///
    /// Creating a mode from a string looks up the name in a process-wide table under a lock; if you use a mode often,
    /// keep it. Comparing modes is one comparison of integers. A value and `Sendable`.
    public struct Mode: Sendable, Hashable, ExpressibleByStringLiteral, CustomStringConvertible {
        /// The index of the name in the process-wide table. Small and dense, so that tables by mode are arrays.
        let id: Int

        /// Creates the mode with the given name.
        ///
        /// - Precondition: `name` is not the name of the common modes, which are a set of modes.
        public init(_ name: String) {
            require(
                name != Modes.commonName,
                "\(name) is the set of common modes, not a mode; schedule in Modes.common, and run one of its members")
            id = Self.table.withLock { table in
                if let id = table.ids[name] { return id }
                table.names.append(name)
                table.ids[name] = table.names.count - 1
                return table.names.count - 1
            }
        }

        public init(stringLiteral name: String) {
            self.init(name)
        }

        init(id: Int) {
            assert(id >= 0, "a mode has no number")
            self.id = id
        }

        /// The mode's name.
        public var name: String { Self.table.withLock { $0.names[id] } }

        public var description: String { name }

        /// The mode in which a loop runs by default. Always one of the common modes.
        public static let `default` = Mode(id: 0)

        /// The mode that a user interface runs while the user drags.
        ///
        /// `tracking` is an ordinary mode, and not a common mode until ``RunLoop/addCommonMode(_:)`` makes it one.
        public static let tracking = Mode(id: 1)

        private struct Table {
            var names = ["default", "tracking"]
            var ids = ["default": 0, "tracking": 1]
        }
        private static let table = Locked(Table())
    }
}
