/// A set of modes: a word of bits for the first 64 modes of the process, and a number for a set of later ones.
struct ModeSet: Sendable, Hashable, BitwiseCopyable {
    private var bits: UInt64 = 0
    // A number, not the set: even an empty reference to one made seven runtime calls when a timer was scheduled.
    private var beyond = ModesBeyond.none

    init() {}

    init(_ mode: RunLoop.Mode) {
        insert(mode)
    }

    var isEmpty: Bool { self == ModeSet() }

    /// A word that is the same for equal sets, and rarely for others.
    @inline(__always)
    var word: UInt64 { bits &+ UInt64(UInt32(bitPattern: beyond.number)) << 32 }

    @inline(__always)
    func contains(_ mode: RunLoop.Mode) -> Bool {
        mode.id < 64 ? bits & (1 << UInt64(mode.id)) != 0 : beyond.ids.contains(mode.id)
    }

    mutating func insert(_ mode: RunLoop.Mode) {
        if mode.id < 64 { bits |= 1 << UInt64(mode.id) } else { beyond = ModesBeyond(beyond.ids.union([mode.id])) }
    }

    mutating func formUnion(_ other: ModeSet) {
        bits |= other.bits
        if other.beyond != .none { beyond = ModesBeyond(beyond.ids.union(other.beyond.ids)) }
    }

    mutating func subtract(_ other: ModeSet) {
        bits &= ~other.bits
        if other.beyond != .none { beyond = ModesBeyond(beyond.ids.subtracting(other.beyond.ids)) }
    }

    func subtracting(_ other: ModeSet) -> ModeSet {
        var result = self
        result.subtract(other)
        return result
    }

    /// The modes, in the order in which the process first named them.
    var all: [RunLoop.Mode] {
        var modes: [RunLoop.Mode] = []
        forEach { modes.append($0) }
        return modes
    }

    /// Calls `body` with each mode, in the order in which the process first named them.
    func forEach(_ body: (RunLoop.Mode) -> Void) {
        var rest = bits
        while rest != 0 {
            body(RunLoop.Mode(id: rest.trailingZeroBitCount))
            rest &= rest - 1
        }
        guard beyond != .none else { return }
        for id in beyond.ids.sorted() { body(RunLoop.Mode(id: id)) }
    }
}

/// A set of modes beyond the first 64, by its number. A process keeps every such set that it has used.
private struct ModesBeyond: Sendable, Hashable, BitwiseCopyable {
    let number: Int32

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
        assert(ids.allSatisfy { $0 >= 64 }, "a mode that has a bit of its own is among those beyond")
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
