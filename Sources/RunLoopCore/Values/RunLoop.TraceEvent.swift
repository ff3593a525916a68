extension RunLoop {
    /// Something that a loop did, or declined to do. A value and `Sendable`.
    public enum TraceEvent: Sendable, CustomStringConvertible {
        /// A run in a mode begins.
        case runBegan(Mode)
        /// A run in a mode has ended.
        case runEnded(Mode, RunResult)
        /// A timer fires, a delayed call is made, a timer source delivers, or a display link is called for a frame. The
        /// text tells the date.
        case called(ItemKind, name: String?, origin: Origin, String)
        /// The loop ignored a request, as documented, or something that was made for a loop was never used. The text
        /// says what and why.
        case ignored(String)

        /// One line, for example `fire poll due 2.000000000 missed 0`.
        public var description: String {
            switch self {
            case .runBegan(let mode): "run \(mode)"
            case .runEnded(let mode, let result): "end \(mode) \(result)"
            case .called(_, _, _, let what): what
            case .ignored(let what): "ignored: \(what)"
            }
        }
    }
}
