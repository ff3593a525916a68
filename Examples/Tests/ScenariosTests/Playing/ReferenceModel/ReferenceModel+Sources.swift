import Scenarios

/// Timer sources on the main loop: R170–R189, and rules 26 and 32 of the format.
extension ReferenceModel {
    /// The state of a source besides its item.
    struct SourceState {
        var entry: Scenario.SourceEntry
        /// An index into `items`.
        var item: Int
        /// The number of delivered grid points, of which one delivery may have several.
        var pointsDelivered: Int64 = 0
        var deliveryCount = 0
        var isActive = false
        var suspensions = 0
        var isCancelled = false
        /// `true` once the cancel handler has been called, and the handlers have been released (R189).
        var isOver = false
        /// `true` while the player still holds the target; always for a source without one.
        var playerHoldsTarget = true

        /// The first point that has not been delivered; `nil` after the delivery of a source that fires once.
        var nextPoint: Int64? {
            if entry.interval == 0, pointsDelivered > 0 { return nil }
            return entry.start + pointsDelivered * entry.interval
        }
    }

    mutating func add(_ entry: Scenario.SourceEntry) {
        let item = makeItem(.source(sources.count), isEverywhere: true)
        sources.append(SourceState(entry: entry, item: item))
        if entry.isActive { activate(sources.count - 1) }
    }

    func source(named name: String) -> Int? {
        sources.firstIndex { $0.entry.name == name }
    }

    // MARK: Life

    /// Activates a source; does nothing if it is active (R170).
    mutating func activate(_ source: Int) {
        guard !sources[source].isActive else { return }
        sources[source].isActive = true
        arm(source)
    }

    /// Suspends a source. Suspensions nest (R180).
    mutating func suspend(_ source: Int) {
        sources[source].suspensions += 1
        items[sources[source].item].arming = nil
    }

    /// Resumes a source. The last matching resume arms anew; a resume without a suspension activates, or does nothing.
    mutating func resume(_ source: Int) {
        guard sources[source].suspensions > 0 else { return activate(source) }
        sources[source].suspensions -= 1
        if sources[source].suspensions == 0 { arm(source) }
    }

    mutating func cancel(_ source: Int) {
        guard !sources[source].isCancelled else { return }
        sources[source].isCancelled = true
        items[sources[source].item].arming = nil
        arm(source)
    }

    /// Arms a source for its next call, if it is neither inactive nor suspended: for its cancel handler now (R186,
    /// R187), or else for its next point, which may have passed.
    private mutating func arm(_ source: Int) {
        let state = sources[source]
        guard state.isActive, state.suspensions == 0 else { return }
        if state.isCancelled {
            if !state.isOver { rearm(state.item, at: now) }
        } else if let point = state.nextPoint {
            rearm(state.item, at: point)
        }
    }

    // MARK: Calling

    /// Calls the handler whose turn it is.
    mutating func deliver(_ source: Int) {
        guard !sources[source].isCancelled else { return callCancelHandler(source) }
        guard let due = sources[source].nextPoint else { return }
        let entry = sources[source].entry
        // All points up to now are delivered as one (R176); the next is the first one after now (R177), even if it
        // passes while the handler works.
        let points = entry.interval > 0 ? (now - due) / entry.interval + 1 : 1
        sources[source].pointsDelivered += points
        sources[source].deliveryCount += 1
        let count = sources[source].deliveryCount
        note(.delivery(name: entry.name, count: count, mode: runningModes.last, due: due, data: points))
        now += entry.busy
        if count == entry.cancelAfter { sources[source].isCancelled = true }
        arm(source)
    }

    /// Calls the cancel handler; then the handlers are released, and with them the hold on a strong target (R189).
    private mutating func callCancelHandler(_ source: Int) {
        note(.cancelled(name: sources[source].entry.name))
        sources[source].isOver = true
        guard let target = sources[source].entry.target, target.hold == .strong else { return }
        if !sources[source].playerHoldsTarget { note(.deinit(name: target.name)) }
    }

    /// Releases the player's hold on a source's target; a weakly held target cancels its source at its deinit.
    mutating func dropTargetOfSource(_ name: String) {
        guard let source = sources.firstIndex(where: { $0.entry.target?.name == name }),
            let target = sources[source].entry.target, sources[source].playerHoldsTarget
        else { return }
        sources[source].playerHoldsTarget = false
        switch target.hold {
        case .strong:
            if sources[source].isOver { note(.deinit(name: name)) }
        case .weak:
            note(.deinit(name: name))
            cancel(source)
        }
    }
}
