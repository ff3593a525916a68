extension RunLoop.ItemKind {
    /// Returns the words for an item or a handler, for example `timer "poll" (Daemon/main.swift:12)`.
    @inline(never)
    @_spi(Ports) public func title(_ name: String?, _ origin: String) -> String {
        "\(self)\(name.map { " \(quoted($0))" } ?? "") (\(origin))"
    }

    /// Returns the words for an item or a handler that was made at a place in the sources.
    @_spi(Ports) public func title(_ name: String?, _ origin: RunLoop.Origin) -> String {
        title(name, origin.description)
    }
}
