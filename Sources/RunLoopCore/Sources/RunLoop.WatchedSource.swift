extension RunLoop {
    /// A source that is ready when its descriptor is. Not for subclassing: it has no public initializer.
    ///
    /// The driver watches the descriptor as long as the source is in any mode. A source that is ready and cannot be
    /// served is parked: its descriptor is not watched until one of its modes runs.
    open class WatchedSource: Source {
        /// The descriptor. Set it only while the source is in no loop.
        @exclusivity(unchecked) @_spi(Ports) public final var descriptor: Int32
        /// The events for which the descriptor is watched; an empty set pauses the source.
        final var interest: DescriptorEvents {
            willSet { checkThread() }
            didSet {
                guard interest != oldValue, let loop, let token, parkedIndex == nil else { return }
                if !oldValue.isEmpty { loop.driver.unwatch(token) }
                watchAgain(in: loop)
            }
        }

        init(descriptor: Int32, interest: DescriptorEvents, order: Int, origin: Origin) {
            self.descriptor = descriptor
            self.interest = interest
            super.init(order: order, origin: origin)
        }

        /// Called when the source has left its last mode, was invalidated in its loop, or lost its loop.
        func wasRemoved() {}

        /// Returns the events to deliver; `nil` if there are none, or if the rate limit holds the source back, which
        /// parks it.
        @inline(__always)
        final func due(of found: DescriptorEvents, in loop: RunLoop) -> DescriptorEvents? {
            assert(token != nil, "a source was found ready that is not watched")
            let wanted = found.intersection(interest)
            guard !wanted.isEmpty else { return nil }
            guard passesLimit(in: loop) else {
                loop.park(self)
                return nil
            }
            return wanted
        }

        // MARK: Watching

        fileprivate final func beginWatch(in loop: RunLoop) throws(DescriptorError) {
            assert(token == nil && parkedIndex == nil, "a descriptor is watched twice for one source")
            let token = loop.descriptors.insert(self)
            do {
                if interest.isEmpty {
                    try loop.driver.check(descriptor)
                } else {
                    try loop.driver.watch(descriptor, for: interest, token: token)
                }
            } catch {
                loop.descriptors.remove(token)
                throw error
            }
            self.token = token
            loop.hasOrderedDescriptors = loop.hasOrderedDescriptors || order != 0
        }

        private final func endWatch(in loop: RunLoop) {
            guard let token = token.take() else { return }
            assert(loop.descriptors[token]?.object === self, "a token finds another source")
            if parkedIndex != nil {
                loop.parked.remove(self)
            } else if !interest.isEmpty {
                loop.driver.unwatch(token)
            }
            loop.descriptors.remove(token)
        }

        final override func unpark(in loop: RunLoop) {
            guard !isCalling, !isHeldBack(in: loop) else { return }
            loop.parked.remove(self)
            watchAgain(in: loop)
        }

        private final func watchAgain(in loop: RunLoop) {
            guard let token, !interest.isEmpty else { return }
            assert(loop.descriptors[token]?.object === self, "a token finds another source")
            assert(parkedIndex == nil, "a parked descriptor is watched")
            do {
                try loop.driver.watch(descriptor, for: interest, token: token)
            } catch {
                // The descriptor is no longer watched, and the source leaves like a parked one.
                loop.parked.insert(self)
                loop.emit(.ignored("\(self) was invalidated: \(error)"))
                invalidate()
            }
        }

        // MARK: As an item

        final override var kind: ItemKind { .descriptor }

        final override var detail: String? {
            "descriptor \(descriptor), \(interest.isEmpty ? "paused" : "\(interest)")"
                + (parkedIndex == nil ? "" : ", ready and parked")
        }

        final override func mayBeCalledAgain(in loop: RunLoop) {
            loop.parked.lookAgain()
        }

        final override func setMembership(_ membership: Membership, in loop: RunLoop) {
            super.setMembership(membership, in: loop)
            if parkedIndex != nil { loop.parked.lookAgain() }
            guard membership.isEmpty, token != nil else { return }
            endWatch(in: loop)
            wasRemoved()
        }
    }

    /// Schedules a source in modes of this loop, and begins to watch its descriptor.
    @_spi(Ports) public func schedule(_ source: WatchedSource, _ modes: Modes) throws(DescriptorError) {
        guard admits(source), !modes.isEmpty else { return }
        if source.token == nil { try source.beginWatch(in: self) }
        enrol(source, modes)
    }
}
