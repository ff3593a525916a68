extension RunLoop {
    /// The name of a mode that a loop can run in.
    ///
    /// A mode is no more than a name: it comes to life when something is scheduled in it, and it never goes away (R7).
    /// Equal names are the same mode, in every loop. ``Modes-swift.struct/common`` is not a mode one can run in, so it
    /// is not a `Mode`: where items are scheduled, ``Modes-swift.struct`` stands.
    ///
    /// Creating a mode from a string looks the name up in a process-wide table under a lock; keep the value where it is
    /// used often. Comparing modes costs one comparison of integers.
    public struct Mode: Sendable, Hashable, ExpressibleByStringLiteral, CustomStringConvertible {
        /// The place of the name in the process-wide table; small and dense, so that tables by mode are arrays.
        package let id: Int

        /// The mode of that name.
        ///
        /// - Precondition: `name` is not the name of the common modes, which is a set of modes and no mode.
        public init(_ name: String) {
            require(
                name != Modes.commonName,
                "\(name) is the set of common modes, not a mode; schedule in Modes.common, and run one of its members")
            id = ModeNames.shared.id(of: name)
        }

        public init(stringLiteral name: String) {
            self.init(name)
        }

        init(id: Int) {
            self.id = id
        }

        /// The mode's name.
        public var name: String { ModeNames.shared.name(of: id) }

        public var description: String { name }

        /// The mode that a loop runs in unless another is asked for. Always one of the common modes (R16).
        public static let `default` = Mode(id: 0)

        /// The mode that a user interface runs while the user drags (R25).
        ///
        /// It is an ordinary mode, and not common until ``RunLoop/addCommonMode(_:)`` makes it so.
        public static let tracking = Mode(id: 1)
    }
}

/// The names of all modes of the process, so that a mode is an index and not a string.
private final class ModeNames: Sendable {
    static let shared = ModeNames()

    private struct Table {
        var names = ["default", "tracking"]
        var ids = ["default": 0, "tracking": 1]
    }
    private let table = Locked(Table())

    func id(of name: String) -> Int {
        table.withLock { table in
            if let id = table.ids[name] { return id }
            table.names.append(name)
            table.ids[name] = table.names.count - 1
            return table.names.count - 1
        }
    }

    func name(of id: Int) -> String {
        table.withLock { $0.names[id] }
    }
}
