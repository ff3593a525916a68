extension Timer {
    /// Creates a timer that calls a method of `target`, which it keeps until it is invalidated.
    ///
    /// ```swift
    /// let timer = Timer(fire: date, interval: .seconds(2), target: self, selector: Clock.tick, repeats: true)
    /// ```
    ///
    /// If the target keeps a repeating timer, both live as long as the timer is valid. Use `weakTarget` if the timer
    /// must not keep its target.
    ///
    /// - Parameters:
    ///   - fireDate: the first date.
    ///   - interval: the time between fires; used only if the timer repeats.
    ///   - target: the object whose method is called.
    ///   - selector: the method, which receives the timer.
    ///   - userInfo: any value; kept until the timer is invalidated.
    ///   - repeats: whether the timer fires more than once.
    public convenience init<Target: AnyObject>(
        fire fireDate: RunLoop.Instant, interval: Duration, target: Target,
        selector: @escaping (Target) -> (Timer) -> Void, userInfo: Any? = nil, repeats: Bool,
        file: StaticString = #fileID, line: UInt32 = #line
    ) {
        self.init(
            fire: fireDate, interval: interval, repeats: repeats, block: { selector(target)($0) }, file: file,
            line: line)
        carry(userInfo)
    }

    /// Creates a timer that calls a method of `weakTarget` without keeping it. Once the target has been released, the
    /// timer invalidates itself and does not fire.
    ///
    /// The target's `deinit` may call ``RunLoop/Item/invalidate()``; then no further fire comes at all.
    ///
    /// - Parameters:
    ///   - fireDate: the first date.
    ///   - interval: the time between fires; used only if the timer repeats.
    ///   - weakTarget: the object whose method is called as long as it lives.
    ///   - selector: the method, which receives the timer.
    ///   - userInfo: any value; kept until the timer is invalidated.
    ///   - repeats: whether the timer fires more than once.
    public convenience init<Target: AnyObject>(
        fire fireDate: RunLoop.Instant, interval: Duration, weakTarget: Target,
        selector: @escaping (Target) -> (Timer) -> Void, userInfo: Any? = nil, repeats: Bool,
        file: StaticString = #fileID, line: UInt32 = #line
    ) {
        let block = { [weak weakTarget] (timer: Timer) in
            guard let weakTarget else { return timer.invalidate() }
            selector(weakTarget)(timer)
        }
        self.init(fire: fireDate, interval: interval, repeats: repeats, block: block, file: file, line: line)
        carry(userInfo)
    }
}
