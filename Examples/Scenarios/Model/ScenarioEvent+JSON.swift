internal import RunLoopKit

extension ScenarioEvent {
    /// The event as one line of JSON, without the line break.
    ///
    /// The keys come in a fixed order and times are exact, so that two plays can be compared byte for byte.
    package var json: String {
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
        case .delivery(let name, let count, let mode, let due, let data):
            event("fire", name: name)
            add("count", "\(count)")
            if let mode { add("mode", quoted(mode)) }
            add("due", decimalSeconds(due))
            add("data", "\(data)")
        case .frame(let name, let count, let mode, let timestamp, let dropped):
            event("fire", name: name)
            add("count", "\(count)")
            add("mode", quoted(mode))
            add("timestamp", decimalSeconds(timestamp))
            add("dropped", "\(dropped)")
        case .action(let name, let count, let mode, let action, let isFree):
            event("fire", name: name)
            add("count", "\(count)")
            if let mode { add("mode", quoted(mode)) }
            add("action", quoted(action))
            if isFree { add("free", "true") }
        case .tick(let name, let count, let mode, let remaining):
            event("fire", name: name)
            add("count", "\(count)")
            add("mode", quoted(mode))
            if let remaining { add("remaining", "\(remaining)") }
        case .reading(let name, let text):
            event("reading", name: name)
            add("text", quoted(text))
        case .cancelled(let name): event("cancelled", name: name)
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
