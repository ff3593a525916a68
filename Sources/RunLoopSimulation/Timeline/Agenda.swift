internal import RunLoopCore

/// The dated events that the world around the threads of a simulation causes: bytes arrive, a host fails.
struct Agenda {
    /// The events and their dates, by date; equal dates keep their order. Most events come last, where inserting them
    /// moves nothing.
    private var entries: ArraySlice<(date: RunLoop.Instant, appointment: Appointment)> = []

    mutating func insert(_ appointment: Appointment, at date: RunLoop.Instant) {
        var (low, high) = (entries.startIndex, entries.endIndex)
        while low < high {
            let middle = (low + high) / 2
            if entries[middle].date <= date { low = middle + 1 } else { high = middle }
        }
        entries.insert((date, appointment), at: low)
    }

    /// The date of the next event.
    var firstDate: RunLoop.Instant? {
        mutating get {
            while let first = entries.first, first.appointment.isOff { entries.removeFirst() }
            return entries.first?.date
        }
    }

    /// The next event and its date.
    var next: (date: RunLoop.Instant, what: String)? {
        mutating get { firstDate.map { ($0, entries.first!.appointment.description) } }
    }

    /// Removes and returns the next event, if it is due by `date`.
    mutating func takeFirst(until date: RunLoop.Instant) -> Appointment? {
        guard let firstDate, firstDate <= date else { return nil }
        return entries.removeFirst().appointment
    }

    /// Removes and returns one of the events with the earliest date, if they are due by `date`: the first event of some
    /// lane.
    ///
    /// - Parameter choose: chooses among several lanes.
    mutating func takeAny(until date: RunLoop.Instant, _ choose: ([String]) -> Int) -> Appointment? {
        guard let firstDate, firstDate <= date else { return nil }
        var firsts: [(lane: String, index: Int)] = []
        for index in entries.indices.prefix(while: { entries[$0].date == firstDate }) {
            let appointment = entries[index].appointment
            guard !appointment.isOff, !firsts.contains(where: { $0.lane == appointment.lane }) else { continue }
            firsts.append((appointment.lane, index))
        }
        let chosen = firsts.count > 1 ? choose(firsts.map(\.lane)) : 0
        return entries.remove(at: firsts[chosen].index).appointment
    }

    /// Removes all events, which then do not happen. Call them off: an event may be kept by an object that it keeps.
    mutating func removeAll() -> [Appointment] {
        defer { entries.removeAll() }
        return entries.map(\.appointment)
    }
}

/// An event on the agenda of a simulated world.
@_spi(Ports) public final class Appointment: Sendable, CustomStringConvertible {
    // Unsafe, but only the thread whose turn it is uses it.
    private nonisolated(unsafe) var action: (() -> Void)?
    private let what: StaticString
    let host: String
    /// The host that causes the event, if it is another host.
    private let sender: String?

    init(_ what: StaticString, from sender: String?, _ host: String, _ action: @escaping () -> Void) {
        (self.what, self.sender, self.host, self.action) = (what, sender, host, action)
    }

    /// The lane of the event: events with equal dates keep their order only within a lane.
    var lane: String { sender.map { "\($0) to \(host)" } ?? description }

    /// For example `bytes arrive on server`.
    public var description: String { "\(what) on \(host)" }

    var isOff: Bool { action == nil }

    /// Calls the event off. Harmless when repeated or too late.
    public func callOff() {
        action = nil
    }

    func keep() {
        let action = action
        self.action = nil
        action?()
    }
}
