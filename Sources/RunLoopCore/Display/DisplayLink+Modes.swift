extension DisplayLink {
    /// Has the link called while `loop` runs in one of `modes`; in modes that it is in already nothing changes (R193).
    ///
    /// The first call is in the first frame after now (R205). A link is in one loop at a time, and as many modes of it
    /// as one likes. One that is invalid, or in another loop, is ignored as documented; ``RunLoop/trace`` tells. On the
    /// loop's thread, O(log n).
    public func add(to loop: RunLoop, forMode modes: RunLoop.Modes) {
        loop.checkThread()
        guard isValid else { return loop.emit(.ignored("a display link that is invalid was added; make a new one")) }
        guard self.loop == nil || self.loop === loop else {
            return loop.emit(.ignored("a display link that is in another loop was added; remove it there first"))
        }
        setMembership(membership(in: loop).joining(modes, common: loop.commonModes), in: loop)
    }

    /// Takes the link out of modes of `loop` without invalidating it; it can be added again (R194).
    ///
    /// Out of the common modes a link is taken only if it was added through them, as a timer is (R20). Out of its last
    /// mode, the loop lets it go; it keeps its block or target. On the loop's thread, O(log n).
    public func remove(from loop: RunLoop, forMode modes: RunLoop.Modes) {
        loop.checkThread()
        let membership = membership(in: loop)
        guard !membership.isEmpty else { return }
        setMembership(membership.leaving(modes, common: loop.commonModes), in: loop)
    }

    private func membership(in loop: RunLoop) -> Membership {
        self.loop === loop ? loop.timers.membership(of: TimerClient(self)) : .none
    }

    private func setMembership(_ membership: Membership, in loop: RunLoop) {
        if self.loop != nil {
            if membership.isEmpty { withdraw() } else { loop.timers.move(TimerClient(self), to: membership) }
            return
        }
        guard !membership.isEmpty else { return }
        loopChanged(to: loop)
        loop.timers.register(TimerClient(self), membership)
        if !isPaused { begin(in: loop) }
    }

    /// Leaves the loop.
    func withdraw() {
        guard let loop else { return }
        loopChanged(to: nil)
        loop.timers.unregister(TimerClient(self))
        TimerClient(self).release()
    }
}
