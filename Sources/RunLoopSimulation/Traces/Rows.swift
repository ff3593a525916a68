/// The events of a run that a picture shows, each with the state of the lanes. A `Sendable` value.
@_spi(Ports) public struct Rows: Sendable {
    /// A part of a run: an event, or a choice that was made before the next event.
    public enum Entry: Sendable {
        /// An event.
        case event(TracedEvent)
        /// A choice, which was or was not the usual one.
        case choice(isDeparture: Bool)
    }

    /// An event that a picture shows.
    public struct Row: Sendable {
        /// The event, with the last name of each lane.
        public let event: TracedEvent
        /// The lanes that have a thread at the time of the event.
        public let alive: Set<String>
        /// `true` if the lane of the event has no thread any more.
        public fileprivate(set) var isLast = false
        /// The indices of the choices between the previous row and this one, among all choices. The last row also has
        /// the choices after it.
        public fileprivate(set) var choices: Range<Int>
        /// `true` if one of these choices is a departure.
        public fileprivate(set) var isDeparture: Bool

        /// Returns `true` if the choice with this number, counted from 1, belongs to the row.
        public func has(_ step: Int?) -> Bool { step.map { choices.contains($0 - 1) } ?? false }
    }

    /// The lanes, in the order of their appearance.
    public private(set) var lanes: [String]
    /// The rows, in the order of their events.
    public private(set) var rows: [Row] = []

    /// Creates the rows of a run. O(n) in the number of entries.
    ///
    /// - Parameters:
    ///   - entries: the events and choices of the run.
    ///   - lanes: the lanes that had a thread before the first entry.
    ///   - alive: the lanes that have a thread at the first entry.
    public init(_ entries: [Entry], lanes: [String] = [], alive: Set<String> = []) {
        self.lanes = lanes
        let names = Self.names(in: entries)
        var (alive, choices, isDeparture) = (alive, 0..<0, false)
        var others: [String] = []
        for entry in entries {
            switch entry {
            case .choice(let departs):
                choices = choices.lowerBound..<choices.upperBound + 1
                isDeparture = isDeparture || departs
            case .event(let event):
                let event = event.renamed(names)
                switch event.kind {
                case .began:
                    alive.insert(event.lane)
                    if !self.lanes.contains(event.lane) { self.lanes.append(event.lane) }
                case .ended:
                    alive.remove(event.lane)
                    if rows.last?.event.lane == event.lane { rows[rows.count - 1].isLast = true }
                case .renamed: break
                case .note, .call, .ignored, .message:
                    rows.append(Row(event: event, alive: alive, choices: choices, isDeparture: isDeparture))
                    (choices, isDeparture) = (choices.upperBound..<choices.upperBound, false)
                    others += event.lanes
                }
            }
        }
        if let last = rows.indices.last {
            rows[last].choices = rows[last].choices.lowerBound..<choices.upperBound
            rows[last].isDeparture = rows[last].isDeparture || isDeparture
        }
        var known = Set(self.lanes)
        for name in others where known.insert(name).inserted { self.lanes.append(name) }
    }

    /// Returns the last name of each lane that was renamed.
    private static func names(in entries: [Entry]) -> [String: String] {
        var names: [String: String] = [:]
        for case .event(let event) in entries {
            if case .renamed(let name) = event.kind { names[event.lane] = name }
        }
        return names
    }

    // MARK: Parts

    /// The largest number of rows in a part, and in a run all of whose rows are shown.
    private static let (mostRows, fewRows) = (60, 40)

    /// Returns the numbers of the rows around departures, around a step, and at the end; of all rows, if there are few.
    ///
    /// - Parameter step: the number of a choice, counted from 1.
    public func centred(on step: Int?) -> [Int] {
        guard rows.count > Self.fewRows else { return Array(rows.indices) }
        var shown: Set<Int> = []
        func show(_ index: Int, amid distance: Int) {
            guard shown.count < Self.mostRows else { return }
            shown.formUnion(max(0, index - distance)...min(rows.count - 1, index + distance))
        }
        for index in rows.indices where rows[index].has(step) { show(index, amid: 4) }
        show(rows.count - 1, amid: 8)
        for index in rows.indices.reversed() where rows[index].isDeparture { show(index, amid: 3) }
        for index in rows.indices.reversed() where rows[index].isLast { show(index, amid: 0) }
        // A line that says that one event is left out takes as much room as the event.
        return rows.indices.filter { shown.contains($0) || shown.contains($0 - 1) && shown.contains($0 + 1) }
    }
}

extension TracedEvent {
    fileprivate func renamed(_ names: [String: String]) -> TracedEvent {
        guard !names.isEmpty else { return self }
        func name(_ lane: String) -> String { names[lane] ?? lane }
        var kind = kind
        if case .message(let message, let sender) = kind { kind = .message(message, from: name(sender)) }
        return TracedEvent(
            date: date, lane: name(lane), thread: thread, owner: owner.map(name), kind: kind, words: words,
            place: place)
    }
}
