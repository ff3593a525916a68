extension RunLoop {
    /// What kind of thing a loop holds, or calls.
    public enum ItemKind: String, Sendable, Hashable, CaseIterable, CustomStringConvertible {
        case timer
        case timerSource = "timer source"
        case displayLink = "display link"
        case source
        case descriptor
        case observer
        case block

        /// The words that reports use.
        public var description: String { rawValue }
    }
}
