/// A source that can be parked.
protocol ParkedListNode: AnyObject {
    /// The node's index in its list; `nil` if it is not parked.
    var parkedIndex: Int? { get set }
}

/// The sources whose descriptors are not watched for now, because they were ready when the source could not be called.
struct ParkedList<Node: ParkedListNode> {
    private(set) var all: [Node] = []
    /// The last mode for which the list was searched: nodes that can be watched in it are not parked.
    private var mode: RunLoop.Mode?

    var isEmpty: Bool { all.isEmpty }

    mutating func insert(_ node: Node) {
        assert(node.parkedIndex == nil, "a source was parked twice")
        node.parkedIndex = all.count
        all.append(node)
    }

    /// Removes a node, whose place the last one takes. O(1).
    mutating func remove(_ node: Node) {
        guard let index = node.parkedIndex.take() else { return }
        assert(index < all.count && all[index] === node, "a parked source does not know its place")
        let last = all.removeLast()
        guard last !== node else { return }
        all[index] = last
        last.parkedIndex = index
    }

    /// Notes that something other than the mode has changed, so that a node may be watched again.
    mutating func lookAgain() {
        mode = nil
    }

    /// - Returns: whether the nodes have to be checked.
    mutating func begin(_ mode: RunLoop.Mode) -> Bool {
        defer { self.mode = mode }
        return self.mode != mode
    }

    /// Traps unless each node knows its place.
    func checkInvariants() {
        for index in all.indices {
            precondition(all[index].parkedIndex == index, "a parked source does not know its place")
        }
    }
}
