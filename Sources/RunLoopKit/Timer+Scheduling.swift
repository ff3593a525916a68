@_spi(Ports) public import RunLoopCore

// The constructors that count from now, and those that schedule at once: both need the calling thread's loop.

extension Timer {
    /// Creates a timer that fires first one `interval` from now, once it has been added to a loop.
    ///
    /// - Parameters:
    ///   - interval: the time until the first fire and between fires. Zero or less counts as 0.0001 s.
    ///   - repeats: whether the timer fires more than once.
    ///   - block: called on the loop's thread at every fire; kept until the timer is invalidated.
    @available(
        *, noasync,
        message: "it asks the thread for its loop; write Timer(fire: loop.now + interval, interval: interval, …)"
    )
    public convenience init(
        timeInterval interval: Duration, repeats: Bool, block: consuming @escaping (Timer) -> Void,
        file: StaticString = #fileID, line: UInt32 = #line
    ) {
        self.init(
            fire: RunLoop.currentReference.date(after: interval), interval: interval, repeats: repeats, block: block,
            file: file, line: line)
    }

    /// Creates a timer that fires first one `interval` from now and calls a method of `target`. The timer keeps the
    /// target until it is invalidated.
    @available(
        *, noasync,
        message: "it asks the thread for its loop; write Timer(fire: loop.now + interval, interval: interval, …)"
    )
    public convenience init<Target: AnyObject>(
        timeInterval interval: Duration, target: Target, selector: @escaping (Target) -> (Timer) -> Void,
        userInfo: Any? = nil, repeats: Bool, file: StaticString = #fileID, line: UInt32 = #line
    ) {
        self.init(
            fire: RunLoop.currentReference.date(after: interval), interval: interval, target: target,
            selector: selector, userInfo: userInfo, repeats: repeats, file: file, line: line)
    }

    /// Creates a timer that fires first one `interval` from now and calls a method of `weakTarget` without keeping it.
    /// Once the target has been released, the timer invalidates itself.
    @available(
        *, noasync,
        message: "it asks the thread for its loop; write Timer(fire: loop.now + interval, interval: interval, …)"
    )
    public convenience init<Target: AnyObject>(
        timeInterval interval: Duration, weakTarget: Target, selector: @escaping (Target) -> (Timer) -> Void,
        userInfo: Any? = nil, repeats: Bool, file: StaticString = #fileID, line: UInt32 = #line
    ) {
        self.init(
            fire: RunLoop.currentReference.date(after: interval), interval: interval, weakTarget: weakTarget,
            selector: selector, userInfo: userInfo, repeats: repeats, file: file, line: line)
    }

    /// Creates a timer of the current loop, in the default mode only: it rests while the loop runs in another mode.
    @available(
        *, noasync,
        message: "it asks the thread for its loop; write loop.add(Timer(fire: loop.now + interval, …), forMode: …)"
    )
    @discardableResult
    public static func scheduledTimer(
        withTimeInterval interval: Duration, repeats: Bool, block: consuming @escaping (Timer) -> Void,
        file: StaticString = #fileID, line: UInt32 = #line
    ) -> Timer {
        let loop = RunLoop.currentReference
        let timer = Timer(
            fire: loop.date(after: interval), interval: interval, repeats: repeats, block: block, file: file,
            line: line)
        loop.schedule(timer)
        return timer
    }

    /// Creates a timer of the current loop, in the default mode only, that calls a method of `target`. The timer keeps
    /// the target until it is invalidated.
    @available(
        *, noasync,
        message: "it asks the thread for its loop; write loop.add(Timer(fire: loop.now + interval, …), forMode: …)"
    )
    @discardableResult
    public static func scheduledTimer<Target: AnyObject>(
        timeInterval interval: Duration, target: Target, selector: @escaping (Target) -> (Timer) -> Void,
        userInfo: Any? = nil, repeats: Bool, file: StaticString = #fileID, line: UInt32 = #line
    ) -> Timer {
        let loop = RunLoop.currentReference
        let timer = Timer(
            fire: loop.date(after: interval), interval: interval, target: target, selector: selector,
            userInfo: userInfo, repeats: repeats, file: file, line: line)
        loop.schedule(timer)
        return timer
    }

    /// Creates a timer of the current loop, in the default mode only, that calls a method of `weakTarget` without
    /// keeping it. Once the target has been released, the timer invalidates itself.
    @available(
        *, noasync,
        message: "it asks the thread for its loop; write loop.add(Timer(fire: loop.now + interval, …), forMode: …)"
    )
    @discardableResult
    public static func scheduledTimer<Target: AnyObject>(
        timeInterval interval: Duration, weakTarget: Target, selector: @escaping (Target) -> (Timer) -> Void,
        userInfo: Any? = nil, repeats: Bool, file: StaticString = #fileID, line: UInt32 = #line
    ) -> Timer {
        let loop = RunLoop.currentReference
        let timer = Timer(
            fire: loop.date(after: interval), interval: interval, weakTarget: weakTarget, selector: selector,
            userInfo: userInfo, repeats: repeats, file: file, line: line)
        loop.schedule(timer)
        return timer
    }
}
