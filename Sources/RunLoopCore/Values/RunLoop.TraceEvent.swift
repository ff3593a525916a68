extension RunLoop {
    /// An event of a loop's trace: an action, or a request that it declined. A value and `Sendable`.
    public enum TraceEvent: Sendable, CustomStringConvertible {
        /// A run in a mode begins.
        case runBegan(Mode)
        /// A run in a mode has ended.
        case runEnded(Mode, RunResult)
        /// A timer fires, a delayed call is made, a timer source delivers, or a display link is called for a frame. The
        /// text contains the date.
        case called(ItemKind, name: String?, origin: Origin, String)
        /// The loop ignored a request, as documented, or an item never had its turn. Such an item was not added to a
        /// loop, or waits for a mode in which its loop did not run while it was traced, or its loop ends without having
        /// been run. The text names the item and the reason.
        case ignored(String)

        /// The event in one line, for example `fire poll due 2.000000000 missed 0`.
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
