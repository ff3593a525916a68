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

    /// The modes that something is scheduled in: one or several modes, or the common modes, or both.
    ///
    /// ```swift
    /// loop.add(timer, forMode: .common)
    /// loop.perform(inModes: [.default, "panel"]) { … }
    /// ```
    public struct Modes: Sendable, Hashable, ExpressibleByArrayLiteral, ExpressibleByStringLiteral {
        package var explicit: ModeSet
        package var includesCommon: Bool

        static let commonName = "common"

        /// One mode.
        public init(_ mode: Mode) {
            explicit = ModeSet(mode)
            includesCommon = false
        }

        /// The mode of that name, or the common modes for the name `common`.
        public init(stringLiteral name: String) {
            self = name == Modes.commonName ? .common : Modes(Mode(name))
        }

        /// All of the given modes together. An empty list schedules nothing (R156).
        public init(arrayLiteral elements: Modes...) {
            self.init(elements)
        }

        /// All of the given modes together.
        public init(_ elements: some Sequence<Modes>) {
            explicit = ModeSet()
            includesCommon = false
            for element in elements {
                explicit.formUnion(element.explicit)
                includesCommon = includesCommon || element.includesCommon
            }
        }

        /// The mode ``RunLoop/Mode/default``.
        public static let `default` = Modes(Mode.default)

        /// The mode ``RunLoop/Mode/tracking``.
        public static let tracking = Modes(Mode.tracking)

        /// Every mode that the loop counts as common, those added later included (R17, R18).
        public static let common = {
            var modes = Modes([])
            modes.includesCommon = true
            return modes
        }()

        package var isEmpty: Bool { explicit.isEmpty && !includesCommon }
    }
}

/// A set of modes: a word of bits for the first 64 modes of the process, and the number of a set for those beyond.
package struct ModeSet: Sendable, Hashable, BitwiseCopyable {
    private var bits: UInt64 = 0
    // Not the set itself: a reference to it, though it was to nothing, made seven calls of the runtime when a timer was
    // scheduled.
    private var beyond = ModesBeyond.none

    package init() {}

    package init(_ mode: RunLoop.Mode) {
        insert(mode)
    }

    package var isEmpty: Bool { self == ModeSet() }

    @inline(__always)
    package func contains(_ mode: RunLoop.Mode) -> Bool {
        mode.id < 64 ? bits & (1 << UInt64(mode.id)) != 0 : beyond.ids.contains(mode.id)
    }

    package mutating func insert(_ mode: RunLoop.Mode) {
        if mode.id < 64 { bits |= 1 << UInt64(mode.id) } else { beyond = ModesBeyond(beyond.ids.union([mode.id])) }
    }

    package mutating func formUnion(_ other: ModeSet) {
        bits |= other.bits
        if other.beyond != .none { beyond = ModesBeyond(beyond.ids.union(other.beyond.ids)) }
    }

    package mutating func subtract(_ other: ModeSet) {
        bits &= ~other.bits
        if other.beyond != .none { beyond = ModesBeyond(beyond.ids.subtracting(other.beyond.ids)) }
    }

    package func subtracting(_ other: ModeSet) -> ModeSet {
        var result = self
        result.subtract(other)
        return result
    }

    /// The modes, in the order in which the process first named them.
    package var all: [RunLoop.Mode] {
        var modes: [RunLoop.Mode] = []
        forEach { modes.append($0) }
        return modes
    }

    /// Calls `body` with each mode, in the order in which the process first named them.
    package func forEach(_ body: (RunLoop.Mode) -> Void) {
        var rest = bits
        while rest != 0 {
            body(RunLoop.Mode(id: rest.trailingZeroBitCount))
            rest &= rest - 1
        }
        guard beyond != .none else { return }
        for id in beyond.ids.sorted() { body(RunLoop.Mode(id: id)) }
    }
}

/// A set of modes beyond the first 64, by its number: a process that has so many keeps every set of them that it has used,
/// as it keeps their names.
private struct ModesBeyond: Sendable, Hashable, BitwiseCopyable {
    private let number: Int32

    static let none = ModesBeyond(number: 0)

    private struct Table {
        var sets: [Set<Int>] = [[]]
        var numbers: [Set<Int>: Int32] = [[]: 0]
    }
    private static let table = Locked(Table())

    private init(number: Int32) {
        self.number = number
    }

    init(_ ids: Set<Int>) {
        number = Self.table.withLock { table in
            if let number = table.numbers[ids] { return number }
            table.sets.append(ids)
            let number = Int32(table.sets.count - 1)
            table.numbers[ids] = number
            return number
        }
    }

    var ids: Set<Int> { Self.table.withLock { $0.sets[Int(number)] } }
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
