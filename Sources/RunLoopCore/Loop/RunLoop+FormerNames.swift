// Names of version 0.4.0, which the next version no longer has.

extension RunLoop {
    /// The former spelling: the label is `forMode:` now.
    @available(*, deprecated, renamed: "contains(_:forMode:)")
    public func contains(_ item: Item, inMode modes: Modes) -> Bool { contains(item, forMode: modes) }

    /// The former spelling: the label is `forMode:` now.
    @available(*, deprecated, renamed: "remove(_:forMode:)")
    public func remove(_ item: Item, fromMode modes: Modes) { remove(item, forMode: modes) }
}
