/// A source that can be parked.
protocol ParkedListNode: AnyObject {
    /// Its index among those that are parked, if it is parked.
    var parkedIndex: Int? { get set }
}

/// Sources whose descriptor is not watched for now, because it was found ready and they could not be called.
struct ParkedList<Node: ParkedListNode> {
    private(set) var all: [Node] = []
    /// The mode for which those that could be watched again already are.
    private var mode: RunLoop.Mode?

    var isEmpty: Bool { all.isEmpty }

    mutating func insert(_ node: Node) {
        node.parkedIndex = all.count
        all.append(node)
    }

    /// O(1): the last one takes its place.
    mutating func remove(_ node: Node) {
        guard let index = node.parkedIndex.take() else { return }
        let last = all.removeLast()
        guard last !== node else { return }
        all[index] = last
        last.parkedIndex = index
    }

    /// Something other than the mode has changed, so that one of them may be watched again.
    mutating func lookAgain() {
        mode = nil
    }

    /// - Returns: whether they are to be looked at.
    mutating func begin(_ mode: RunLoop.Mode) -> Bool {
        defer { self.mode = mode }
        return self.mode != mode
    }
}
