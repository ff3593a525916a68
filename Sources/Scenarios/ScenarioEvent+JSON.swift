extension ScenarioEvent {
    /// The event as one line of JSON, without the line break.
    ///
    /// The keys come in a fixed order and times are exact, so that two plays can be compared byte for byte.
    public var json: String {
        var line = "{\"t\":\(decimalSeconds(t))"
        func add(_ key: String, _ value: String) { line += ",\"\(key)\":\(value)" }
        func event(_ event: String, name: String? = nil, mode: String? = nil) {
            add("event", "\"\(event)\"")
            if let name { add("name", quoted(name)) }
            if let mode { add("mode", quoted(mode)) }
        }
        switch kind {
        case .fire(let name, let count, let mode, let due, let missed, let manual):
            event("fire", name: name)
            add("count", "\(count)")
            add("mode", quoted(mode))
            add("due", decimalSeconds(due))
            add("missed", "\(missed)")
            if manual { add("manual", "true") }
        case .invalidated(let name): event("invalidated", name: name)
        case .deinit(let name): event("deinit", name: name)
        case .runBegin(let mode): event("runBegin", mode: mode)
        case .runEnd(let mode): event("runEnd", mode: mode)
        case .busyBegin: event("busyBegin")
        case .busyEnd: event("busyEnd")
        case .end: event("end")
        }
        if let thread { add("thread", quoted(thread)) }
        return line + "}"
    }
}
