/// In which modes of its loop an item is, and whether it came through the common modes.
struct Membership: Hashable {
    var modes = ModeSet()
    var isCommon = false
    /// In whatever mode its loop runs: for what does not know modes, as GCD's timers.
    private(set) var isEverywhere = false

    static let none = Membership()

    static let everywhere = {
        var membership = Membership()
        membership.isEverywhere = true
        return membership
    }()

    var isEmpty: Bool { modes.isEmpty && !isCommon && !isEverywhere }

    @inline(__always)
    func contains(_ mode: RunLoop.Mode) -> Bool { isEverywhere || modes.contains(mode) }

    /// The membership after adding to `added`: common means every mode of `common` now, and those that join it (R17).
    func joining(_ added: RunLoop.Modes, common: ModeSet) -> Membership {
        var result = self
        result.modes.formUnion(added.explicit)
        if added.includesCommon {
            result.isCommon = true
            result.modes.formUnion(common)
        }
        return result
    }

    /// The membership after removing from `removed`. Common acts only on an item that was added through it (R20); a
    /// single mode leaves the item a common one (R21).
    func leaving(_ removed: RunLoop.Modes, common: ModeSet) -> Membership {
        var result = self
        if removed.includesCommon && isCommon {
            result.isCommon = false
            result.modes.subtract(common)
        }
        result.modes.subtract(removed.explicit)
        return result
    }
}
