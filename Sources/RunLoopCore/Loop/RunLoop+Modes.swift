extension RunLoop {
    /// Makes `mode` one of the common modes, for good. Everything that was added to the common modes is in it from now
    /// on. On the loop's thread, O(number of items).
    public func addCommonMode(_ mode: Mode) {
        checkThread()
        guard !commonModes.contains(mode) else { return }
        commonModes.insert(mode)
        timers.addCommonMode(mode)
        for item in allUntimedItems() where item.membership.isCommon {
            item.setMembership(item.membership.joining(Modes(mode), common: commonModes), in: self)
        }
    }

    /// The one place where an item joins modes of the loop. One that may not join is ignored and reported to ``trace``.
    func enrol(_ item: Item, _ modes: Modes) {
        guard admits(item), !modes.isEmpty else { return }
        guard !hasEnded else { return enrolTooLate(item, modes) }
        item.setMembership(item.membership.joining(modes, common: commonModes), in: self)
    }

    /// The last jobs may still add an item. It ends like the items that were there before.
    @inline(never)
    private func enrolTooLate(_ item: Item, _ modes: Modes) {
        item.setMembership(item.membership.joining(modes, common: commonModes), in: self)
        item.withdraw(from: self)
        item.loopEnded()
    }

    /// Whether an item may be scheduled here. One of another loop traps.
    package func admits(_ item: Item) -> Bool {
        checkThread(of: item)
        guard item.isValid else {
            emit(.ignored("\(item) was added, but it is invalid; make a new one"))
            return false
        }
        require(
            item.home == nil || item.isIn(self),
            "\(item) was added to a loop, but it is in another one; remove it there first, or make one for each loop")
        return true
    }

    /// Takes an item out of modes of this loop without invalidating it. The date and the grid of a timer stay.
    ///
    /// Removing from the common modes acts only on an item that was added to them; removing from one of them leaves it
    /// a common item. An item that was added to ``Modes-swift.struct/every`` leaves no single mode: it stays in every one
    /// until it is removed from `.every`, which is reported to ``trace``. When an item has left its last mode, the loop releases it. On the loop's thread, O(log n).
    public func remove(_ item: Item, fromMode modes: Modes) {
        checkThread(of: item)
        guard item.isIn(self), !item.membership.isEmpty else { return }
        if item.membership.isEverywhere, !modes.isEmpty, !modes.groups.contains(.every) {
            emit(.ignored("\(item) is in every mode, and stays in \(modes); remove it from .every"))
        }
        item.setMembership(item.membership.leaving(modes, common: commonModes), in: self)
    }

    /// Whether an item is scheduled in all of `modes`; for the common modes, whether it was added to them. On the
    /// loop's thread, O(1).
    public func contains(_ item: Item, inMode modes: Modes) -> Bool {
        checkThread()
        return item.isIn(self) ? item.membership.contains(modes) : modes.isEmpty
    }
}
