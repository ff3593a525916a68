extension RunLoop.ItemKind {
    /// Returns the words for an item or a handler, for example `timer "poll" (Daemon/main.swift:12)`.
    package func title(_ name: String?, _ origin: some CustomStringConvertible) -> String {
        "\(self)\(name.map { " \(quoted($0))" } ?? "") (\(origin))"
    }
}
