extension RunLoop {
    /// Makes `mode` one of the common modes, for good. All items of the common modes are in it from now on. On the
    /// loop's thread, O(number of items).
    public func addCommonMode(_ mode: Mode) {
        checkThread()
        guard !modeTable.common.contains(mode) else { return }
        modeTable.common.insert(mode)
        timers.addCommonMode(mode)
        for item in untimed.all where item.membership.isCommon {
            item.setMembership(item.membership.joining(Modes(mode), common: modeTable.common), in: self)
        }
    }

    /// Adds an item to modes of the loop, the only way to join them. Ignores an inadmissible item and reports it to
    /// ``trace``.
    func enrol(_ item: Item, _ modes: Modes) {
        guard admits(item), !modes.isEmpty else { return }
        guard !hasEnded else { return enrolTooLate(item, modes) }
        item.setMembership(item.membership.joining(modes, common: modeTable.common), in: self)
    }

    /// Adds an item on behalf of one of the last jobs. It ends like the items that were there before.
    @inline(never)
    private func enrolTooLate(_ item: Item, _ modes: Modes) {
        item.setMembership(item.membership.joining(modes, common: modeTable.common), in: self)
        item.withdraw(from: self)
        item.loopEnded()
    }

    /// Returns whether an item may be scheduled here. Traps for an item of another loop.
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

    /// Removes an item from modes of this loop without invalidating it. The date and the grid of a timer stay.
    ///
    /// Removing from the common modes acts only on an item that was added to them; removing from one of them leaves it
    /// a common item. An item that was added to ``Modes-swift.struct/every`` leaves no single mode: it stays in every
    /// one until it is removed from `.every`, which is reported to ``trace``. The loop releases an item that has left
    /// its last mode. On the loop's thread, O(log n).
    public func remove(_ item: Item, forMode modes: Modes) {
        checkThread(of: item)
        guard item.isIn(self), case let membership = item.membership, !membership.isEmpty else { return }
        item.setMembership(membership.leaving(modes, common: modeTable.common), in: self)
        if membership.isEverywhere, !modes.isEmpty, !modes.groups.contains(.every) {
            emit(.ignored("\(item) is in every mode, and stays in \(modes); remove it from .every"))
        }
    }

    /// Returns whether an item is scheduled in all of `modes`; for the common modes, whether it was added to them. On
    /// the loop's thread, O(1).
    public func contains(_ item: Item, forMode modes: Modes) -> Bool {
        checkThread()
        return item.isIn(self) ? item.membership.contains(modes) : modes.isEmpty
    }
}
