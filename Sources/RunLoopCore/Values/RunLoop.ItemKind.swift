extension RunLoop {
    /// The kinds of things that a loop holds or calls.
    public enum ItemKind: String, Sendable, Hashable, CaseIterable, CustomStringConvertible {
        case timer
        case wallTimer = "wall timer"
        case delayedCall = "delayed call"
        case timerSource = "timer source"
        case displayLink = "display link"
        case source
        case descriptor
        case observer
        case block
        case executor
        case sleep
        case task

        /// The kind's name in reports.
        public var description: String { rawValue }
    }
}
