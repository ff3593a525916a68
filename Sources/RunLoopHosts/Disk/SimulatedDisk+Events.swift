internal import Glibc

extension SimulatedDisk {
    /// Reports an event of a name.
    func tell(_ kind: Int32, at path: String, cookie: UInt32 = 0) {
        guard !state.queues.isEmpty else { return }
        let name = String(path.split(separator: "/").last!)
        let directory = Directories.parent(of: path)
        for queue in state.queues { queue.take(kind, in: directory, name: name, cookie: cookie) }
    }

    /// Reports an event of the content of a file.
    func tell(_ kind: Int32, _ node: FileNode) {
        guard !state.queues.isEmpty else { return }
        tell(kind, at: node.path)
        tellFile(kind, node)
    }

    private func tellFile(_ kind: Int32, _ node: FileNode) {
        for queue in state.queues { queue.take(kind, of: node) }
    }

    func tellOfMove(of node: FileNode, from path: String, to newPath: String, replacing replaced: FileNode?) {
        node.path = newPath
        state.lastCookie += 1
        tell(IN_MOVED_FROM, at: path, cookie: state.lastCookie)
        tell(IN_MOVED_TO, at: newPath, cookie: state.lastCookie)
        let replaced = replaced === node ? nil : replaced
        if let replaced { tellFile(IN_ATTRIB, replaced) }
        tellFile(IN_MOVE_SELF, node)
        if let replaced { tellIfGone(replaced) }
    }

    func tellOfRemoval(of node: FileNode, at path: String) {
        tellFile(IN_ATTRIB, node)
        tellIfGone(node)
        tell(IN_DELETE, at: path)
    }

    /// Reports the end of a file, if it has no name any more and is not open.
    func tellIfGone(_ node: FileNode) {
        guard node.openings == 0, state.names[node.path] !== node else { return }
        tellFile(IN_DELETE_SELF, node)
    }
}
