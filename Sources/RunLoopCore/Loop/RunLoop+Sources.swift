extension RunLoop {
    /// Calls the observers of an activity that are there when it begins and are not invalidated meanwhile.
    ///
    /// - Returns: whether there were any.
    @discardableResult
    @inline(__always)
    func notify(_ activity: Activity, in mode: Mode) -> Bool {
        guard untimed.observerCount > 0, modeTable.observedActivities(in: mode).contains(activity) else { return false }
        callObservers(of: activity, in: mode)
        return true
    }

    private func callObservers(of activity: Activity, in mode: Mode) {
        if activity == .afterWaiting && isWatched(.sleeps) { watchedSleepEnds(in: mode) }
        for item in modeTable.state(of: mode).observers where item.observedActivities.contains(activity) {
            item.observe(activity, in: self)
        }
    }

    /// Serves the sources of `mode` that are signalled when the step begins, by order and then by signal.
    func serveSignalled(in mode: Mode, onlyFirst: Bool) -> Bool {
        var due = signals.due(in: mode) { $0.membership.contains(mode) && !$0.isCalling }
        var served = false
        for source in due where source.signalNumber != 0 && source.isValid {
            guard source.serve([], in: self) else { continue }
            statistics.sources += 1
            served = true
            // A nested run may have found the source on the stack.
            if source.signalNumber != 0 { signals.lookAgain() }
            if onlyFirst { break }
        }
        signals.end(&due)
        return served
    }

    func serveReady(in mode: Mode) -> Bool {
        var handled = false
        if hasOrderedDescriptors { ready.sort { descriptors[$0]?.object.order ?? 0 } }
        while let (token, found) = ready.popFirst() {
            guard let source = descriptors[token] else { continue }
            // Retained, because the handler may remove the source.
            source.retain()
            if source.with({ serve($0, found, in: mode) }) { handled = true }
            source.release()
        }
        return handled
    }

    /// Serves a source, or parks it if it is not in the mode or is being called; its level-triggered descriptor will
    /// report again.
    @inline(__always)
    private func serve(_ source: Source, _ found: DescriptorEvents, in mode: Mode) -> Bool {
        let isInMode = source.membership.contains(mode)
        guard isInMode, !source.isCalling else {
            // The next mode is not known here: any mode has to look at the parked sources.
            if !isInMode { parked.lookAgain() }
            park(source)
            return false
        }
        guard source.serve(found, in: self) else { return false }
        statistics.sources += 1
        if source.parkedIndex != nil { parked.lookAgain() }
        return true
    }

    /// Ends the watch of a descriptor that was found ready and cannot be served.
    func park(_ source: Source) {
        guard source.parkedIndex == nil, let token = source.token else { return }
        assert(source.isIn(self), "a source of another loop is parked here")
        driver.unwatch(token)
        parked.insert(source)
        statistics.parks += 1
    }

    /// Has parked descriptors watched again if the mode has changed since the last time.
    func unpark(for mode: Mode) {
        guard parked.begin(mode) else { return }
        for source in parked.all where source.membership.contains(mode) { source.unpark(in: self) }
    }
}
