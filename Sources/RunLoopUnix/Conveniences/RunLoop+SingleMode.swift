public import RunLoopKit

// Lets a `Mode` in a variable stand where modes are taken. Disfavoured, so that a literal such as `.default` or "panel"
// still means `Modes`.

extension RunLoop {
    /// Schedules a signal source in one mode of this loop.
    @_disfavoredOverload
    public func add(_ source: SignalSource, forMode mode: Mode) throws(SystemError) {
        try add(source, forMode: Modes(mode))
    }

    /// Takes a signal source out of one mode of this loop without invalidating it.
    @_disfavoredOverload
    public func remove(_ source: SignalSource, fromMode mode: Mode) {
        remove(source, fromMode: Modes(mode))
    }

    /// Schedules a child source in one mode of this loop.
    @_disfavoredOverload
    public func add(_ source: ChildSource, forMode mode: Mode) throws(SystemError) {
        try add(source, forMode: Modes(mode))
    }

    /// Takes a child source out of one mode of this loop without invalidating it.
    @_disfavoredOverload
    public func remove(_ source: ChildSource, fromMode mode: Mode) {
        remove(source, fromMode: Modes(mode))
    }

    /// Schedules a file watcher in one mode of this loop, which keeps it until it is invalidated or removed.
    @_disfavoredOverload
    public func add(_ watcher: FileWatcher, forMode mode: Mode) throws(DescriptorError) {
        try add(watcher, forMode: Modes(mode))
    }

    /// Takes a file watcher out of one mode of this loop without invalidating it.
    @_disfavoredOverload
    public func remove(_ watcher: FileWatcher, fromMode mode: Mode) {
        remove(watcher, fromMode: Modes(mode))
    }
}
