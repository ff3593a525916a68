public import RunLoopKit

// Overloads that accept a single `Mode`, such as one in a variable. Disfavoured, so that a literal such as `.default`
// or "panel" still means `Modes`.

extension RunLoop {
    /// Schedules a signal source in one mode of this loop.
    @_disfavoredOverload
    public func add(_ source: SignalSource, forMode mode: Mode) throws(SystemError) {
        try add(source, forMode: Modes(mode))
    }

    /// Removes a signal source from one mode of this loop without invalidating it.
    @_disfavoredOverload
    public func remove(_ source: SignalSource, fromMode mode: Mode) {
        remove(source, fromMode: Modes(mode))
    }

    /// Schedules a child source in one mode of this loop.
    @_disfavoredOverload
    public func add(_ source: ChildSource, forMode mode: Mode) throws(SystemError) {
        try add(source, forMode: Modes(mode))
    }

    /// Removes a child source from one mode of this loop without invalidating it.
    @_disfavoredOverload
    public func remove(_ source: ChildSource, fromMode mode: Mode) {
        remove(source, fromMode: Modes(mode))
    }

    /// Schedules a file watcher in one mode of this loop, which keeps the watcher until it is invalidated or removed.
    @_disfavoredOverload
    public func add(_ watcher: FileWatcher, forMode mode: Mode) throws(DescriptorError) {
        try add(watcher, forMode: Modes(mode))
    }

    /// Removes a file watcher from one mode of this loop without invalidating it.
    @_disfavoredOverload
    public func remove(_ watcher: FileWatcher, fromMode mode: Mode) {
        remove(watcher, fromMode: Modes(mode))
    }
}
