/// One thing that happened while a scenario was played; one line of the JSON output.
public struct ScenarioEvent: Sendable, Equatable {
    public enum Kind: Sendable, Equatable {
        case fire(name: String, count: Int, mode: String, due: Int64, missed: Int64, manual: Bool)
        case invalidated(name: String)
        case `deinit`(name: String)
        case runBegin(mode: String)
        case runEnd(mode: String)
        case busyBegin
        case busyEnd
        case end
    }

    /// Nanoseconds from the start.
    public var t: Int64
    public var kind: Kind
    /// The name of the thread, where a scenario has several.
    public var thread: String?

    public init(t: Int64, _ kind: Kind, thread: String? = nil) {
        self.t = t
        self.kind = kind
        self.thread = thread
    }
}
