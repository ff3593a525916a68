/// The modes of an item in its loop, and whether it was added to the common modes or to every mode.
struct Membership: Hashable {
    var modes = ModeSet()
    var isCommon = false
    var isEverywhere = false

    static let none = Membership()
    static let everywhere = Membership(isEverywhere: true)

    var isEmpty: Bool { modes.isEmpty && !isCommon && !isEverywhere }

    /// A word that is the same for equal memberships, and rarely for others.
    @inline(__always)
    var word: UInt64 { modes.word &+ (isCommon ? 1 << 62 : 0) &+ (isEverywhere ? 1 << 63 : 0) }

    @inline(__always)
    func contains(_ mode: RunLoop.Mode) -> Bool { modes.contains(mode) || isEverywhere }

    /// Returns whether the item is in all of `other`. For the common modes and for every mode: whether it was added to
    /// them.
    func contains(_ other: RunLoop.Modes) -> Bool {
        (isEverywhere || other.explicit.subtracting(modes).isEmpty) && (isCommon || !other.groups.contains(.common))
            && (isEverywhere || !other.groups.contains(.every))
    }

    /// Returns the membership after adding to `added`. Common means every mode of `common` now, and modes that become
    /// common later.
    func joining(_ added: RunLoop.Modes, common: ModeSet) -> Membership {
        var result = self
        result.modes.formUnion(added.explicit)
        if added.groups.contains(.common) {
            result.isCommon = true
            result.modes.formUnion(common)
        }
        if added.groups.contains(.every) { result.isEverywhere = true }
        return result
    }

    /// Returns the membership after removing from `removed`. Removing a common item from a single mode leaves it
    /// common.
    func leaving(_ removed: RunLoop.Modes, common: ModeSet) -> Membership {
        var result = self
        if removed.groups.contains(.common) && isCommon {
            result.isCommon = false
            result.modes.subtract(common)
        }
        if removed.groups.contains(.every) { result.isEverywhere = false }
        result.modes.subtract(removed.explicit)
        return result
    }
}
