public import RunLoopCore

// The constructors that schedule at once: they need the calling thread's loop.

extension DisplayLink {
    /// Creates a link that calls `block`, in the common modes of the current loop.
    ///
    /// - Parameters:
    ///   - clock: the dates of the frames.
    ///   - block: called on the loop's thread; kept until the link is invalidated.
    @available(
        *, noasync, message: "it asks the thread for its loop; make a DisplayLink and add(to: loop, forMode: .common)"
    )
    @discardableResult
    public static func scheduledDisplayLink(
        clock: FrameClock = FrameClock(), _ block: @escaping (DisplayLink) -> Void, file: StaticString = #fileID,
        line: UInt32 = #line
    ) -> DisplayLink {
        scheduled(DisplayLink(clock: clock, block, file: file, line: line))
    }

    /// Creates a link that calls a method of `target`, in the common modes of the current loop. The link keeps the
    /// target until it is invalidated.
    @available(
        *, noasync, message: "it asks the thread for its loop; make a DisplayLink and add(to: loop, forMode: .common)"
    )
    @discardableResult
    public static func scheduledDisplayLink<Target: AnyObject>(
        clock: FrameClock = FrameClock(), target: Target, selector: @escaping (Target) -> (DisplayLink) -> Void,
        file: StaticString = #fileID, line: UInt32 = #line
    ) -> DisplayLink {
        scheduled(DisplayLink(clock: clock, target: target, selector: selector, file: file, line: line))
    }

    /// Creates a link that calls a method of `weakTarget` without keeping it, in the common modes of the current loop.
    /// Once the target has been released, the link invalidates itself.
    @available(
        *, noasync, message: "it asks the thread for its loop; make a DisplayLink and add(to: loop, forMode: .common)"
    )
    @discardableResult
    public static func scheduledDisplayLink<Target: AnyObject>(
        clock: FrameClock = FrameClock(), weakTarget: Target, selector: @escaping (Target) -> (DisplayLink) -> Void,
        file: StaticString = #fileID, line: UInt32 = #line
    ) -> DisplayLink {
        scheduled(DisplayLink(clock: clock, weakTarget: weakTarget, selector: selector, file: file, line: line))
    }

    @available(*, noasync)
    private static func scheduled(_ link: DisplayLink) -> DisplayLink {
        link.add(to: RunLoop.current, forMode: .common)
        return link
    }
}
