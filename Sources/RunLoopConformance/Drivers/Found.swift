@_spi(Ports) internal import RunLoopCore

extension Driver {
    /// Waits for `duration`, or less if a descriptor is ready or the driver is woken, and returns the reports.
    func look(for duration: Duration = .zero) -> [Found] {
        let ready = ReadyQueue()
        _ = wait(until: now + duration, into: ready)
        var found: [Found] = []
        while let (token, events) = ready.popFirst() { found.append(Found(token: token, events: events)) }
        return found.sorted { $0.token.slot < $1.token.slot }
    }
}

/// A driver's report of a descriptor.
struct Found: Equatable, CustomStringConvertible {
    let token: SourceToken
    let events: DescriptorEvents

    init(token: SourceToken, events: DescriptorEvents) {
        self.token = token
        self.events = events
    }

    init(_ slot: UInt32, _ events: DescriptorEvents) {
        self.init(token: SourceToken(slot), events: events)
    }

    var description: String {
        let read = events.contains(.readable) ? "r" : ""
        let written = events.contains(.writable) ? "w" : ""
        return "\(token.slot).\(token.version)\(read)\(written)"
    }
}

extension SourceToken {
    init(_ slot: UInt32) {
        self.init(slot: slot, version: 0)
    }
}
