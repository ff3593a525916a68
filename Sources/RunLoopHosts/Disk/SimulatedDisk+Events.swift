internal import Glibc

extension SimulatedDisk {
    /// Reports an event of a node to its watchers, and to the watchers of its directory.
    func tell(_ kind: Int32, _ node: DiskNode) {
        guard !state.queues.isEmpty else { return }
        tellDirectory(kind, node)
        tellItself(kind, node)
    }

    /// Reports an event of a node's name to the watchers of its directory.
    func tellDirectory(_ kind: Int32, _ node: DiskNode, cookie: UInt32 = 0) {
        guard let directory = node.directory else { return }
        for queue in state.queues { queue.take(kind, of: node, in: directory, cookie: cookie) }
    }

    private func tellItself(_ kind: Int32, _ node: DiskNode) {
        for queue in state.queues { queue.take(kind, of: node) }
    }

    /// Reports that a node has moved to its present place, which another node may have had.
    func tellOfMove(of node: DiskNode, from place: NameChange.Place, replacing replaced: DiskNode?) {
        state.lastCookie += 1
        for queue in state.queues {
            queue.take(IN_MOVED_FROM, of: node, in: place.directory, named: place.name, cookie: state.lastCookie)
        }
        tellDirectory(IN_MOVED_TO, node, cookie: state.lastCookie)
        if let replaced { tellItself(IN_ATTRIB, replaced) }
        tellItself(IN_MOVE_SELF, node)
        if let replaced { hasLostName(replaced) }
    }

    func tellOfRemoval(of node: DiskNode) {
        // The number of a directory's links is not one of its attributes.
        if !(node is DirectoryNode) { tellItself(IN_ATTRIB, node) }
        hasLostName(node)
        tellDirectory(IN_DELETE, node)
    }

    private func hasLostName(_ node: DiskNode) {
        if node.nameCount > 0 { return }
        if node.openings > 0 { node.directory?.openings += 1 } else { tellItself(IN_DELETE_SELF, node) }
    }

    /// Notes that a node was closed once. Reports the node's end if it has no name any more and is not open.
    func hasClosed(_ node: DiskNode) {
        node.openings -= 1
        guard node.openings == 0, !node.isNamed else { return }
        tellItself(IN_DELETE_SELF, node)
        if let directory = node.directory { hasClosed(directory) }
    }
}
