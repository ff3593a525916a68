extension RunLoop {
    /// The time of the wall clock: the system's, or the simulation's. On the loop's thread.
    public var wallTime: WallTime { world.wallTime }

    /// Notifies the loop's wall timers when the clock is set, from the first of them on.
    func watchWallClock() {
        _ = self[wallClockSource]
    }
}

private let wallClockSource = RunLoop.Local { loop in
    let source = WallClockSource(order: .min, origin: RunLoop.Origin())
    source.keepsModesAlive = false
    source.setMembership(.everywhere, in: loop)
    return source
}

/// Finds new deadlines for a loop's wall timers when the clock is set.
private final class WallClockSource: RunLoop.Source {
    override func setMembership(_ membership: Membership, in loop: RunLoop) {
        super.setMembership(membership, in: loop)
        if let token, membership.isEmpty {
            assert(loop.descriptors[token]?.object === self, "a token finds another source")
            loop.driver.unwatch(token)
            loop.descriptors.remove(token)
            self.token = nil
        } else if token == nil, !membership.isEmpty {
            let token = loop.descriptors.insert(self)
            loop.driver.watchWallClock(token: token)
            self.token = token
        }
    }

    override func serve(_ found: DescriptorEvents, in loop: RunLoop) -> Bool {
        for item in loop.timers.items() where item.call == nil {
            (item.node.object as? WallTimer)?.clockWasSet(in: loop)
        }
        return false
    }

    override var kind: RunLoop.ItemKind { .source }
    override var hasHandler: Bool { false }
    override func dropHandler(_ body: () -> Void) { body() }
    override var detail: String? { "of wall timers" }
}
