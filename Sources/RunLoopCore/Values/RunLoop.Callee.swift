extension RunLoop {
    /// The handler that a loop calls, as a ``LoopWatcher`` sees it. A value and `Sendable`.
    @_spi(Ports) public struct Callee: Sendable, CustomStringConvertible {
        /// The handler's kind.
        public let kind: ItemKind
        /// The handler's name, if it has one.
        public let name: String?
        /// The file and line that made the handler.
        public let origin: Origin
        /// The number of the task, the post, or the item that fires once; 0 for others. An effect and the call that
        /// follows from it have the same number.
        public let number: UInt64

        init(_ kind: ItemKind, _ name: String?, _ origin: Origin, number: UInt64 = 0) {
            (self.kind, self.name, self.origin, self.number) = (kind, name, origin, number)
        }

        /// The kind, the name and the place, for example `timer "poll" (Daemon/main.swift:12)`.
        public var description: String { kind.title(name, origin) }
    }
}
