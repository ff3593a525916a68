/// The descriptor sources of a loop, by token.
struct DescriptorTable {
    private struct Slot {
        var source: DescriptorSource?
        /// Tells the present tenant from those before it: an event that was collected for an earlier one is dropped.
        var version: UInt32 = 0
    }

    private var slots: [Slot] = []
    private var freeSlots: [UInt32] = []

    /// Sources whose descriptor is not watched for the moment.
    var parked: [DescriptorSource] = []
    /// The mode for which every parked source that could be watched again is.
    var unparkedMode: RunLoop.Mode?

    /// Whether any source has had an order of its own.
    private(set) var hasOrders = false

    var all: [DescriptorSource] { slots.compactMap(\.source) }

    mutating func insert(_ source: DescriptorSource) -> SourceToken {
        hasOrders = hasOrders || source.order != 0
        if let slot = freeSlots.popLast() {
            slots[Int(slot)].source = source
            return SourceToken(slot: slot, version: slots[Int(slot)].version)
        }
        slots.append(Slot(source: source))
        return SourceToken(slot: UInt32(slots.count - 1), version: 0)
    }

    mutating func remove(_ token: SourceToken) {
        slots[Int(token.slot)].source = nil
        slots[Int(token.slot)].version &+= 1
        freeSlots.append(token.slot)
    }

    func source(of token: SourceToken) -> DescriptorSource? {
        let slot = slots[Int(token.slot)]
        return slot.version == token.version ? slot.source : nil
    }

    func checkInvariants() {
        for (index, slot) in slots.enumerated() {
            guard let source = slot.source else { continue }
            precondition(
                source.token == SourceToken(slot: UInt32(index), version: slot.version), "a source lost its token")
            precondition(source.isParked == parked.contains { $0 === source }, "a parked source is not on the list")
        }
    }
}

extension RunLoop {
    /// Schedules a source in modes of this loop.
    ///
    /// The descriptor is watched as long as the source is in any mode. A source that is invalid or in another loop is
    /// ignored.
    ///
    /// - Throws: ``DescriptorError`` if the descriptor is not open, or of a kind that cannot be waited for; the source
    ///   is then not scheduled.
    public func add(_ source: DescriptorSource, forMode modes: Modes) throws(DescriptorError) {
        checkThread()
        guard source.isValid, source.loop == nil || source.loop === self else {
            return emit(.ignored("a descriptor source that is invalid or in another loop was added"))
        }
        try schedule(source, source.membership.joining(modes, common: commonModes))
    }

    /// Schedules a source for whatever mode the loop runs in; it keeps none of them from being empty. For what only
    /// looks at the loop.
    package func addToEveryMode(_ source: DescriptorSource) throws(DescriptorError) {
        checkThread()
        try schedule(source, .everywhere)
    }

    private func schedule(_ source: DescriptorSource, _ membership: Membership) throws(DescriptorError) {
        guard !membership.isEmpty else { return }
        if source.token == nil {
            let token = descriptors.insert(source)
            do {
                try driver.watch(source.fileDescriptor, for: source.events, token: token)
            } catch {
                descriptors.remove(token)
                throw error
            }
            source.token = token
            source.loop = self
        }
        changeModes(of: source, to: membership)
    }

    /// Takes a source out of modes of this loop without invalidating it.
    public func remove(_ source: DescriptorSource, fromMode modes: Modes) {
        checkThread()
        guard source.loop === self else { return }
        let membership = source.membership.leaving(modes, common: commonModes)
        if membership.isEmpty { remove(source) } else { changeModes(of: source, to: membership) }
    }

    func remove(_ source: DescriptorSource) {
        guard let token = source.token else { return }
        changeModes(of: source, to: .none)
        if source.isParked {
            descriptors.parked.removeAll { $0 === source }
            source.isParked = false
        } else {
            driver.unwatch(token)
        }
        source.token = nil
        source.loop = nil
        descriptors.remove(token)
        source.leaveHandler?()
    }

    func changeModes(of source: DescriptorSource, to membership: Membership) {
        let old = source.membership.modes
        source.membership = membership
        membership.modes.subtracting(old).forEach { mode in changeState(of: mode) { $0.sourceCount += 1 } }
        old.subtracting(membership.modes).forEach { mode in changeState(of: mode) { $0.sourceCount -= 1 } }
        if source.isParked { descriptors.unparkedMode = nil }
    }

    /// Serves what was found ready. A source that is not in the mode, or whose handler is on the stack, is parked:
    /// being level-triggered, its descriptor will report again.
    func serveDescriptors(in mode: Mode) -> Bool {
        var handled = false
        if descriptors.hasOrders { ready.sort { descriptors.source(of: $0)?.order ?? 0 } }
        while let (token, events) = ready.popFirst() {
            guard let source = descriptors.source(of: token) else { continue }
            guard source.membership.contains(mode) else {
                // Which mode runs next is not known here: whichever it is, it has to look at what is parked.
                descriptors.unparkedMode = nil
                park(source, token)
                continue
            }
            guard !source.isDispatching else {
                park(source, token)
                continue
            }
            if let end = source.window?.take(at: now) {
                park(source, token)
                look(again: end)
                continue
            }
            calling(.descriptor, source.name, source.origin) { source.serve(events) }
            statistics.sources += 1
            handled = true
            if source.isParked { descriptors.unparkedMode = nil }
        }
        return handled
    }

    /// Parks whatever was found ready; it will be found again when one of its modes runs.
    func parkReady() {
        while let (token, _) = ready.popFirst() {
            guard let source = descriptors.source(of: token) else { continue }
            descriptors.unparkedMode = nil
            park(source, token)
        }
    }

    private func park(_ source: DescriptorSource, _ token: SourceToken) {
        guard !source.isParked else { return }
        driver.unwatch(token)
        source.isParked = true
        descriptors.parked.append(source)
        statistics.parks += 1
    }

    /// Watches parked descriptors again, if the mode has changed since this was last done.
    func unpark(for mode: Mode) {
        guard descriptors.unparkedMode != mode else { return }
        descriptors.unparkedMode = mode
        var lost: [(DescriptorSource, DescriptorError)] = []
        let candidates = descriptors.parked
        descriptors.parked = []
        for source in candidates {
            let mayBeCalled = !source.isDispatching && source.window?.end(at: now) == nil
            guard source.membership.contains(mode), mayBeCalled, let token = source.token else {
                descriptors.parked.append(source)
                continue
            }
            do {
                try driver.watch(source.fileDescriptor, for: source.events, token: token)
                source.isParked = false
            } catch {
                descriptors.parked.append(source)
                lost.append((source, error))
            }
        }
        for (source, error) in lost {
            emit(.ignored("a descriptor source was invalidated: \(error)"))
            source.invalidate()
        }
    }
}
