// Adding things to modes and removing them: timers, observers, custom sources. Descriptor sources are beside their
// table.

extension RunLoop {
    // MARK: Common modes

    /// Makes `mode` one of the common modes, for good. Everything that was added to the common modes is in it from now
    /// on (R16–R19).
    public func addCommonMode(_ mode: Mode) {
        checkThread()
        guard !commonModes.contains(mode) else { return }
        commonModes.insert(mode)
        timers.addCommonMode(mode)
        for observer in allObservers() where observer.membership.isCommon {
            setMembership(observer.membership.joining(Modes(mode), common: commonModes), of: observer)
        }
        for source in allCustomSources() where source.membership.isCommon {
            setMembership(source.membership.joining(Modes(mode), common: commonModes), of: source)
        }
        for source in descriptors.all where source.membership.isCommon {
            changeModes(of: source, to: source.membership.joining(Modes(mode), common: commonModes))
        }
    }

    // MARK: Timers

    /// Schedules a timer in modes of this loop; in modes that it is in already nothing changes (R23, R108).
    ///
    /// The loop keeps the timer until it is invalidated or removed. A timer that is invalid, or scheduled in another
    /// loop, is ignored as documented (R106, R109); ``trace`` tells. O(log n).
    public func add(_ timer: Timer, forMode modes: Modes) {
        checkThread()
        guard timer.isValid else { return emit(.ignored("a timer that is invalid was added; make a new one")) }
        guard timer.canJoin(self) else {
            return emit(.ignored("a timer that is scheduled in another loop was added; remove it there first"))
        }
        timer.setMembership(timer.membership(in: self).joining(modes, common: commonModes), in: self)
    }

    /// Takes a timer out of modes of this loop without invalidating it; its date and its grid stay (R112).
    ///
    /// Out of the common modes a timer is taken only if it was added through them (R20), and taking it out of one of
    /// them leaves it a common one (R21). Out of its last mode, the loop lets it go.
    public func remove(_ timer: Timer, fromMode modes: Modes) {
        checkThread()
        let membership = timer.membership(in: self)
        guard !membership.isEmpty else { return }
        timer.setMembership(membership.leaving(modes, common: commonModes), in: self)
    }

    /// Whether a timer is scheduled in all of `modes`; for the common modes, whether it was added through them (R22).
    public func contains(_ timer: Timer, inMode modes: Modes) -> Bool {
        checkThread()
        let membership = timer.membership(in: self)
        return modes.explicit.subtracting(membership.modes).isEmpty && (!modes.includesCommon || membership.isCommon)
    }

    // MARK: Observers

    /// Has an observer called in modes of this loop. An observer that is invalid or of another loop is ignored (R64).
    public func add(_ observer: Observer, forMode modes: Modes) {
        checkThread()
        guard observer.isValid, observer.loop == nil || observer.loop === self else {
            return emit(.ignored("an observer that is invalid or in another loop was added"))
        }
        setMembership(observer.membership.joining(modes, common: commonModes), of: observer)
    }

    /// Takes an observer out of modes of this loop without invalidating it.
    public func remove(_ observer: Observer, fromMode modes: Modes) {
        checkThread()
        guard observer.loop === self else { return }
        setMembership(observer.membership.leaving(modes, common: commonModes), of: observer)
    }

    func setMembership(_ membership: Membership, of observer: Observer) {
        let old = observer.membership.modes
        observer.membership = membership
        observer.loop = membership.isEmpty ? nil : self
        membership.modes.subtracting(old).forEach { mode in
            changeState(of: mode) { state in
                let place = state.observers.firstIndex { $0.order > observer.order } ?? state.observers.endIndex
                state.observers.insert(observer, at: place)
            }
        }
        old.subtracting(membership.modes).forEach { mode in
            changeState(of: mode) { state in state.observers.removeAll { $0 === observer } }
        }
    }

    func allObservers() -> [Observer] {
        var seen = Set<ObjectIdentifier>()
        return modeStates.flatMap(\.observers).filter { seen.insert(ObjectIdentifier($0)).inserted }
    }

    /// Calls the observers of an activity: those that are there when it begins, but for those invalidated since (R62).
    ///
    /// - Returns: whether there were any.
    @discardableResult
    @inline(__always)
    func notify(_ activity: Observer.Activity, in mode: Mode) -> Bool {
        guard mode.id < modeStates.count, modeStates[mode.id].observedActivities.contains(activity) else {
            return false
        }
        call(activity, in: mode)
        return true
    }

    private func call(_ activity: Observer.Activity, in mode: Mode) {
        for observer in modeStates[mode.id].observers where observer.activities.contains(activity) {
            calling(.observer, observer.name, observer.origin) { observer.call(activity) }
        }
    }

    // MARK: Custom sources

    /// Schedules a source in modes of this loop; its schedule handler is called for each new one (R70). A source that
    /// is invalid or in another loop is ignored.
    public func add(_ source: CustomSource, forMode modes: Modes) {
        checkThread()
        guard source.isValid, source.loop == nil || source.loop === self else {
            return emit(.ignored("a source that is invalid or in another loop was added"))
        }
        setMembership(source.membership.joining(modes, common: commonModes), of: source)
    }

    /// Takes a source out of modes of this loop without invalidating it; its cancel handler is called for each (R70).
    public func remove(_ source: CustomSource, fromMode modes: Modes) {
        checkThread()
        guard source.loop === self else { return }
        setMembership(source.membership.leaving(modes, common: commonModes), of: source)
    }

    func setMembership(_ membership: Membership, of source: CustomSource) {
        let old = source.membership.modes
        let joins = source.membership.isEmpty && !membership.isEmpty
        source.membership = membership
        if joins {
            source.loop = self
            lastSourceNumber += 1
            source.number = lastSourceNumber
            customSources[ObjectIdentifier(source)] = source
            if source.isSignalled { signalled.append(source) }
        } else if membership.isEmpty {
            source.loop = nil
            customSources[ObjectIdentifier(source)] = nil
            signalled.removeAll { $0 === source }
        }
        let (joined, left) = (membership.modes.subtracting(old), old.subtracting(membership.modes))
        joined.forEach { mode in changeState(of: mode) { $0.sourceCount += 1 } }
        left.forEach { mode in changeState(of: mode) { $0.sourceCount -= 1 } }
        joined.forEach { source.scheduleHandler?(self, $0) }
        left.forEach { source.cancelHandler?(self, $0) }
    }

    /// In the order in which they were added.
    func allCustomSources() -> [CustomSource] { customSources.values.sorted { $0.number < $1.number } }

    /// Serves the sources of `mode` that are marked as ready when the step begins: by order, then by signal (R67, R68).
    func serveCustomSources(in mode: Mode, onlyFirst: Bool) -> Bool {
        // In the room of the step before, so that nothing is allocated; a nested run finds none there.
        var due: [CustomSource] = []
        swap(&due, &dueSources)
        for source in signalled where source.membership.modes.contains(mode) && !source.isDispatching {
            let next = due.lastIndex { $0.order <= source.order }.map { $0 + 1 } ?? 0
            due.insert(source, at: next)
        }
        var served = false
        for source in due where source.isSignalled && !(onlyFirst && served) {
            if let end = source.window?.take(at: now) {
                // It stays signalled.
                if !source.window!.isAwaited {
                    source.window!.isAwaited = true
                    look(again: end)
                }
                continue
            }
            source.window?.isAwaited = false
            signalled.removeAll { $0 === source }
            calling(.source, source.name, source.origin) { source.serve() }
            statistics.sources += 1
            served = true
        }
        due.removeAll(keepingCapacity: true)
        swap(&due, &dueSources)
        return served
    }

    // MARK: Modes

    func changeState(of mode: Mode, _ change: (inout ModeState) -> Void) {
        while modeStates.count <= mode.id { modeStates.append(ModeState()) }
        change(&modeStates[mode.id])
        modeStates[mode.id].observedActivities = modeStates[mode.id].observers
            .reduce(into: []) { $0.formUnion($1.activities) }
    }
}
