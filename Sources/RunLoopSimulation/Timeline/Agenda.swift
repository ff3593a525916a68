internal import RunLoopCore

/// What the world around the threads of a simulation does by itself, and when: bytes arrive, a host fails.
struct Agenda {
    /// Something that is to happen. It can be called off.
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

    /// When something happens next.
    var firstDate: RunLoop.Instant? {
        mutating get {
            while let first = heap.first, first.appointment.isOff { removeFirst() }
            return heap.first?.date
        }
    }

    /// What happens next, and when.
    var next: (date: RunLoop.Instant, what: String)? {
        mutating get { firstDate.map { ($0, heap[0].appointment.description) } }
    }

    /// Takes out what happens next, if it does by then.
    mutating func takeFirst(until date: RunLoop.Instant) -> Appointment? {
        guard let firstDate, firstDate <= date else { return nil }
        defer { removeFirst() }
        return heap[0].appointment
    }

    /// Takes out one of those that happen next, if they do by then: of each lane the first one may.
    ///
    /// - Parameter choose: which of the lanes it is, of several.
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

    /// Takes out all that does not happen any more. What waits for it may keep it, and be kept by it: call it off.
    mutating func removeAll() -> [Appointment] {
        defer { heap.removeAll() }
        return heap.map(\.appointment)
    }
}

/// Something on the agenda of a simulated world.
package final class Appointment: Sendable, CustomStringConvertible {
    // Unsafe, but only the thread whose turn it is gets here.
    private nonisolated(unsafe) var action: (() -> Void)?
    private let what: StaticString
    let host: String
    private let sender: String?

    /// - Parameter sender: where it comes from, if it comes from another host.
    init(_ what: StaticString, from sender: String? = nil, _ host: String, _ action: @escaping () -> Void) {
        (self.what, self.sender, self.host, self.action) = (what, sender, host, action)
    }

    /// Of what has equal dates, only that of one lane comes in order.
    var lane: String { sender.map { "\($0) to \(host)" } ?? description }

    /// For example `bytes arrive on server`.
    package var description: String { "\(what) on \(host)" }

    var isOff: Bool { action == nil }

    /// It will not happen. Harmless when repeated, or too late.
    package func callOff() {
        action = nil
    }

    func keep() {
        let action = action
        self.action = nil
        action?()
    }
}
