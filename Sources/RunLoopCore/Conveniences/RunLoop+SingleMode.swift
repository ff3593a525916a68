// Lets a `Mode` in a variable stand where modes are taken. Disfavoured, so that a literal such as `.default` or "panel"
// still means `Modes`.

extension RunLoop {
    /// Schedules a timer in one mode of this loop.
    @_disfavoredOverload
    public func add(_ timer: Timer, forMode mode: Mode) {
        add(timer, forMode: Modes(mode))
    }

    /// Schedules an observer in one mode of this loop.
    @_disfavoredOverload
    public func add(_ observer: Observer, forMode mode: Mode) {
        add(observer, forMode: Modes(mode))
    }

    /// Schedules a source in one mode of this loop.
    @_disfavoredOverload
    public func add(_ source: CustomSource, forMode mode: Mode) {
        add(source, forMode: Modes(mode))
    }

    /// Schedules a source in one mode of this loop.
    @_disfavoredOverload
    public func add(_ source: DescriptorSource, forMode mode: Mode) throws(DescriptorError) {
        try add(source, forMode: Modes(mode))
    }

    /// Takes an item out of one mode of this loop without invalidating it.
    @_disfavoredOverload
    public func remove(_ item: Item, fromMode mode: Mode) {
        remove(item, fromMode: Modes(mode))
    }

    /// Whether an item is scheduled in one mode.
    @_disfavoredOverload
    public func contains(_ item: Item, inMode mode: Mode) -> Bool {
        contains(item, inMode: Modes(mode))
    }

    /// Runs `block` once, in the next pass of the loop in one mode.
    @_disfavoredOverload
    public func perform(
        inModes mode: Mode, _ block: @escaping () -> Void, file: StaticString = #fileID, line: UInt32 = #line
    ) {
        perform(inModes: Modes(mode), block, file: file, line: line)
    }

    /// Calls `block` once, `delay` from now at the earliest, in one mode.
    @_disfavoredOverload
    @discardableResult
    public func perform(
        afterDelay delay: Duration, inModes mode: Mode, _ block: @escaping () -> Void, file: StaticString = #fileID,
        line: UInt32 = #line
    ) -> DelayedCall {
        perform(afterDelay: delay, inModes: Modes(mode), block, file: file, line: line)
    }

    /// Calls `block` once, not before `date`, in one mode.
    @_disfavoredOverload
    @discardableResult
    public func perform(
        at date: Instant, inModes mode: Mode, _ block: @escaping () -> Void, file: StaticString = #fileID,
        line: UInt32 = #line
    ) -> DelayedCall {
        perform(at: date, inModes: Modes(mode), block, file: file, line: line)
    }

    /// Calls a method of `target` once, `delay` from now at the earliest, in one mode.
    @_disfavoredOverload
    @discardableResult
    public func perform<Target: AnyObject>(
        _ selector: @escaping (Target) -> () -> Void, target: Target, named name: String? = nil,
        afterDelay delay: Duration, inModes mode: Mode, file: StaticString = #fileID, line: UInt32 = #line
    ) -> DelayedCall {
        perform(
            selector, target: target, named: name, afterDelay: delay, inModes: Modes(mode), file: file, line: line)
    }

    /// Calls a method of `target` with an argument once, `delay` from now at the earliest, in one mode.
    @_disfavoredOverload
    @discardableResult
    public func perform<Target: AnyObject, Argument: Hashable>(
        _ selector: @escaping (Target) -> (Argument) -> Void, target: Target, with argument: Argument,
        named name: String? = nil, afterDelay delay: Duration, inModes mode: Mode, file: StaticString = #fileID,
        line: UInt32 = #line
    ) -> DelayedCall {
        perform(
            selector, target: target, with: argument, named: name, afterDelay: delay, inModes: Modes(mode), file: file,
            line: line)
    }
}

extension RunLoop.Remote {
    /// Runs `block` once, on the loop's thread, in its next pass in one mode.
    ///
    /// - Returns: `false` if the loop has ended and the block will not run.
    @_disfavoredOverload
    @discardableResult
    public func perform(
        inModes mode: RunLoop.Mode, _ block: consuming @escaping @Sendable (RunLoop) -> Void,
        file: StaticString = #fileID, line: UInt32 = #line
    ) -> Bool {
        perform(inModes: RunLoop.Modes(mode), consume block, file: file, line: line)
    }
}

extension DisplayLink {
    /// Adds the link to one mode of `loop`.
    @_disfavoredOverload
    public func add(to loop: RunLoop, forMode mode: RunLoop.Mode) {
        add(to: loop, forMode: RunLoop.Modes(mode))
    }

    /// Takes the link out of one mode of `loop` without invalidating it.
    @_disfavoredOverload
    public func remove(from loop: RunLoop, forMode mode: RunLoop.Mode) {
        remove(from: loop, forMode: RunLoop.Modes(mode))
    }
}
