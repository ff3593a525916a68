internal import RunLoopCore

/// The dated events that the world around the threads of a simulation causes: bytes arrive, a host fails.
struct Agenda {
    /// A scheduled event, which can be called off.
    struct Entry {
        let date: RunLoop.Instant
        /// Equal dates keep their order.
        let order: UInt64
        let appointment: Appointment

        static func < (one: Entry, other: Entry) -> Bool {
            (one.date, one.order) < (other.date, other.order)
        }
    }

    /// A binary heap, the earliest first.
    private var heap: [Entry] = []
    private var nextOrder: UInt64 = 0

    mutating func insert(_ appointment: Appointment, at date: RunLoop.Instant) {
        heap.append(Entry(date: date, order: nextOrder, appointment: appointment))
        nextOrder += 1
        var index = heap.count - 1
        while index > 0, heap[index] < heap[(index - 1) / 2] {
            heap.swapAt(index, (index - 1) / 2)
            index = (index - 1) / 2
        }
    }

    /// The date of the next event.
    var firstDate: RunLoop.Instant? {
        mutating get {
            while let first = heap.first, first.appointment.isOff { removeFirst() }
            return heap.first?.date
        }
    }

    /// The next event and its date.
    var next: (date: RunLoop.Instant, what: String)? {
        mutating get { firstDate.map { ($0, heap[0].appointment.description) } }
    }

    /// Takes out the next event, if it is due by that date.
    mutating func takeFirst(until date: RunLoop.Instant) -> Appointment? {
        guard let firstDate, firstDate <= date else { return nil }
        defer { removeFirst() }
        return heap[0].appointment
    }

    /// Takes out one of the events with the earliest date, if they are due by then: the first event of some lane.
    ///
    /// - Parameter choose: chooses among several lanes.
    mutating func takeAny(until date: RunLoop.Instant, _ choose: ([String]) -> Int) -> Appointment? {
        guard let firstDate, firstDate <= date else { return nil }
        let equal = heap.filter { $0.date == firstDate && !$0.appointment.isOff }.sorted(by: <)
        var firsts: [Entry] = []
        for entry in equal where !firsts.contains(where: { $0.appointment.lane == entry.appointment.lane }) {
            firsts.append(entry)
        }
        guard firsts.count > 1 else { return takeFirst(until: date) }
        let chosen = firsts[choose(firsts.map(\.appointment.lane))]
        heap.removeAll { $0.order == chosen.order }
        heap.sort(by: <)
        return chosen.appointment
    }

    private mutating func removeFirst() {
        let last = heap.removeLast()
        guard !heap.isEmpty else { return }
        heap[0] = last
        var index = 0
        while true {
            let left = 2 * index + 1
            guard left < heap.count else { return }
            let least = left + 1 < heap.count && heap[left + 1] < heap[left] ? left + 1 : left
            guard heap[least] < heap[index] else { return }
            heap.swapAt(index, least)
            index = least
        }
    }

    /// Takes out all events, which will not happen. Call them off: an event may be kept by an object that it keeps.
    mutating func removeAll() -> [Appointment] {
        defer { heap.removeAll() }
        return heap.map(\.appointment)
    }
}

/// An event on the agenda of a simulated world.
package final class Appointment: Sendable, CustomStringConvertible {
    // Unsafe, but only the thread whose turn it is uses it.
    private nonisolated(unsafe) var action: (() -> Void)?
    private let what: StaticString
    let host: String
    private let sender: String?

    /// - Parameter sender: the host that it comes from, if that is another host.
    init(_ what: StaticString, from sender: String? = nil, _ host: String, _ action: @escaping () -> Void) {
        (self.what, self.sender, self.host, self.action) = (what, sender, host, action)
    }

    /// The lane: events with equal dates keep their order only within a lane.
    var lane: String { sender.map { "\($0) to \(host)" } ?? description }

    /// For example `bytes arrive on server`.
    package var description: String { "\(what) on \(host)" }

    var isOff: Bool { action == nil }

    /// Calls the event off. Harmless when repeated, or too late.
    package func callOff() {
        action = nil
    }

    func keep() {
        let action = action
        self.action = nil
        action?()
    }
}
