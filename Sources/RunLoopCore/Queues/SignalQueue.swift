/// A source that can be signalled.
protocol SignalQueueNode: AnyObject {
    /// The number of the pending signal; 0 if the node was not signalled, or has been served.
    var signalNumber: UInt64 { get }
    var isScheduled: Bool { get }
    var order: Int { get }
}

/// The signalled nodes still to be served, in the order of the signals.
///
/// Nodes that wait for another mode are checked again only when the mode has changed, so that they cost a pass nothing.
struct SignalQueue<Node: SignalQueueNode> {
    private typealias Entry = (node: Node, signal: UInt64)

    private var entries: [Entry] = []
    /// The nodes that could not be served in `waitingMode`.
    private var waiting: [Entry] = []
    private var waitingMode: RunLoop.Mode?
    private var lastSignal: UInt64 = 0
    private var cleanUpCount = 64
    /// The memory for the nodes that a step serves, so that nothing is allocated. A nested run finds it taken.
    private var room: [Node] = []

    var isEmpty: Bool { entries.isEmpty && waiting.isEmpty }

    /// Notes a signal. O(1), amortized.
    ///
    /// - Returns: the number of the signal.
    mutating func add(_ node: Node) -> UInt64 {
        if entries.count >= cleanUpCount {
            entries.removeAll { !Self.isCurrent($0) }
            cleanUpCount = max(64, 2 * entries.count)
        }
        lastSignal += 1
        entries.append((node, lastSignal))
        return lastSignal
    }

    /// Notes that waiting nodes may be served now for a reason other than a new mode.
    mutating func lookAgain() {
        waitingMode = nil
    }

    /// Returns whether a node still waits with that signal.
    @inline(__always)
    private static func isCurrent(_ entry: Entry) -> Bool {
        entry.node.signalNumber == entry.signal && entry.node.isScheduled
    }

    /// Returns the nodes that can be served in `mode`, by order and then by signal. They stay in the queue until they
    /// are served: a nested run may serve them.
    mutating func due(in mode: RunLoop.Mode, where canBeServed: (Node) -> Bool) -> [Node] {
        if waitingMode != mode {
            entries.insert(contentsOf: waiting, at: 0)
            waiting.removeAll(keepingCapacity: true)
            waitingMode = mode
        }
        var due: [Node] = []
        swap(&due, &room)
        assert(due.isEmpty, "the room holds sources of another step")
        var isInOrder = true
        var kept = 0
        for index in entries.indices where Self.isCurrent(entries[index]) {
            let node = entries[index].node
            guard canBeServed(node) else {
                waiting.append(entries[index])
                continue
            }
            // Nodes that waited come first here, and a nested run may have had earlier ones wait after later ones.
            if let last = due.last, (last.order, last.signalNumber) > (node.order, node.signalNumber) {
                isInOrder = false
            }
            due.append(node)
            entries.swapAt(kept, index)
            kept += 1
        }
        assert(kept <= entries.count && kept == due.count, "the queue has lost count of what is due")
        entries.removeLast(entries.count - kept)
        if !isInOrder { due.sort { ($0.order, $0.signalNumber) < ($1.order, $1.signalNumber) } }
        return due
    }

    /// Returns whether any node can be served. O(number of signalled nodes).
    func hasDue(where canBeServed: (Node) -> Bool) -> Bool {
        entries.contains { Self.isCurrent($0) && canBeServed($0.node) }
            || waiting.contains { Self.isCurrent($0) && canBeServed($0.node) }
    }

    /// Ends a step and releases the served nodes.
    mutating func end(_ due: inout [Node]) {
        entries.removeAll { !Self.isCurrent($0) }
        due.removeAll(keepingCapacity: due.count < 1024)
        swap(&due, &room)
    }
}
