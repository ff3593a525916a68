/// An event of a played scenario; one line of the JSON output.
package struct ScenarioEvent: Sendable, Equatable {
    package enum Kind: Sendable, Equatable {
        case fire(name: String, count: Int, mode: String, due: Int64, missed: Int64, manual: Bool)
        /// A timer source calls its handler; the mode is the main loop's, if it is called there.
        case delivery(name: String, count: Int, mode: String?, due: Int64, data: Int64)
        case frame(name: String, count: Int, mode: String, timestamp: Int64, dropped: Int64)
        /// A named timer acts; `isFree` is `true` if its name is free afterwards.
        case action(name: String, count: Int, mode: String?, action: String, isFree: Bool)
        case tick(name: String, count: Int, mode: String, remaining: Int64?)
        /// A frame-rate meter has a new reading.
        case reading(name: String, text: String)
        case cancelled(name: String)
        case invalidated(name: String)
        case `deinit`(name: String)
        case runBegin(mode: String)
        case runEnd(mode: String)
        case busyBegin
        case busyEnd
        case end
    }

    /// The time of the event, in nanoseconds from the start.
    package var t: Int64
    package var kind: Kind
    /// The name of the thread, where a scenario has several.
    package var thread: String?

    package init(t: Int64, _ kind: Kind, thread: String? = nil) {
        self.t = t
        self.kind = kind
        self.thread = thread
    }
}
