// How items come into modes of a loop, and leave them.

extension RunLoop {
    /// Makes `mode` one of the common modes, for good. Everything that was added to the common modes is in it from now
    /// on.
    public func addCommonMode(_ mode: Mode) {
        checkThread()
        guard !commonModes.contains(mode) else { return }
        commonModes.insert(mode)
        timers.addCommonMode(mode)
        for item in allUntimedItems() where item.membership.isCommon {
            item.setMembership(item.membership.joining(Modes(mode), common: commonModes), in: self)
        }
    }

    /// The one place where an item comes into modes of the loop. What may not is ignored as documented; ``trace`` tells.
    func enrol(_ item: Item, _ modes: Modes) {
        guard admits(item) else { return }
        item.setMembership(item.membership.joining(modes, common: commonModes), in: self)
    }

    /// Whether an item may be scheduled here.
    func admits(_ item: Item) -> Bool {
        checkThread()
        guard item.isValid else {
            emit(.ignored("\(item) was added, but it is invalid; make a new one"))
            return false
        }
        guard item.home == nil || item.isIn(self) else {
            emit(.ignored("\(item) was added, but it is in another loop; remove it there first"))
            return false
        }
        return true
    }

    /// Takes an item out of modes of this loop without invalidating it: a timer's date and grid stay.
    ///
    /// Out of the common modes an item is taken only if it was added through them, and taking it out of one of them
    /// leaves it a common one. Out of its last mode, the loop lets it go. On the loop's thread, O(log n).
    public func remove(_ item: Item, fromMode modes: Modes) {
        checkThread()
        guard item.isIn(self), !item.membership.isEmpty else { return }
        item.setMembership(item.membership.leaving(modes, common: commonModes), in: self)
    }

    /// Whether an item is scheduled in all of `modes`; for the common modes, whether it was added through them. On the
    /// loop's thread, O(1).
    public func contains(_ item: Item, inMode modes: Modes) -> Bool {
        checkThread()
        return item.isIn(self) ? item.membership.contains(modes) : modes.isEmpty
    }
}
