/// The signalled sources that have to be served, in the order of the signals.
///
/// Those that wait for another mode are looked at again only when the mode has changed: they cost a pass nothing.
struct SignalQueue {
    private typealias Entry = (source: RunLoop.Source, signal: UInt64)

    private var entries: [Entry] = []
    /// Those that could not be served in that mode.
    private var waiting: [Entry] = []
    private var waitingMode: RunLoop.Mode?
    private var lastSignal: UInt64 = 0
    private var cleanUpCount = 64
    /// Memory for the sources that a step serves, so that nothing is allocated. A nested run finds it taken.
    private var room: [RunLoop.Source] = []

    var isEmpty: Bool { entries.isEmpty && waiting.isEmpty }

    /// Notes a signal, and returns its number. O(1), amortized.
    mutating func add(_ source: RunLoop.Source) -> UInt64 {
        if entries.count >= cleanUpCount {
            entries.removeAll { !Self.isCurrent($0) }
            cleanUpCount = max(64, 2 * entries.count)
        }
        lastSignal += 1
        entries.append((source, lastSignal))
        return lastSignal
    }

    /// Waiting sources may be served now for a reason other than a new mode.
    mutating func lookAgain() {
        waitingMode = nil
    }

    /// Whether a source still waits with that signal.
    @inline(__always)
    private static func isCurrent(_ entry: Entry) -> Bool {
        entry.source.signalNumber == entry.signal && entry.source.isScheduled
    }

    /// The sources that can be served in `mode`, by order and then by signal. They stay here until they are served: a
    /// nested run may serve them.
    mutating func due(in mode: RunLoop.Mode, where canBeServed: (RunLoop.Source) -> Bool) -> [RunLoop.Source] {
        if waitingMode != mode {
            entries.insert(contentsOf: waiting, at: 0)
            waiting.removeAll(keepingCapacity: true)
            waitingMode = mode
        }
        var due: [RunLoop.Source] = []
        swap(&due, &room)
        var isInOrder = true
        var kept = 0
        for index in entries.indices where Self.isCurrent(entries[index]) {
            let source = entries[index].source
            guard canBeServed(source) else {
                waiting.append(entries[index])
                continue
            }
            if let last = due.last, last.order > source.order { isInOrder = false }
            due.append(source)
            entries.swapAt(kept, index)
            kept += 1
        }
        entries.removeLast(entries.count - kept)
        if !isInOrder { due.sort { ($0.order, $0.signalNumber) < ($1.order, $1.signalNumber) } }
        return due
    }

    /// Whether any source can be served. O(number of signalled sources).
    func hasDue(where canBeServed: (RunLoop.Source) -> Bool) -> Bool {
        entries.contains { Self.isCurrent($0) && canBeServed($0.source) }
            || waiting.contains { Self.isCurrent($0) && canBeServed($0.source) }
    }

    /// Ends a step and releases the served sources.
    mutating func end(_ due: inout [RunLoop.Source]) {
        entries.removeAll { !Self.isCurrent($0) }
        due.removeAll(keepingCapacity: due.count < 1024)
        swap(&due, &room)
    }
}
