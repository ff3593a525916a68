internal import Glibc
internal import RunLoopCore
internal import RunLoopSimulation
internal import RunLoopUnix

extension SimulatedDisk {
    /// Loses the host's power: of the unsynced changes some stay, some are lost, and some stay in part.
    func crash() {
        // Names change in the order of the journal.
        let count = state.changes.count
        let kept = chance.outcome(on: machine, "keeps names", usual: count, in: 0...count)
        for (_, change) in state.changes.prefix(kept) { change.apply(to: &state.durableNames) }
        state.changes.removeAll()
        state.queues.removeAll()
        state.names = state.durableNames
        var seen: Set<ObjectIdentifier> = []
        for path in state.names.keys.sorted() {
            let node = state.names[path]!
            node.path = path
            guard seen.insert(ObjectIdentifier(node)).inserted else { continue }
            settle(node)
        }
    }

    private func settle(_ node: FileNode) {
        let count = node.changes.count
        let whole = chance.outcome(on: machine, "keeps changes of \(node.path)", usual: count, in: 0...count)
        var kept = Array(node.changes.prefix(whole))
        if whole < count, case .write(let bytes, let offset) = node.changes[whole], !bytes.isEmpty {
            // The length may be on the disk before the bytes are.
            let torn = chance.outcome(on: machine, "tears \(node.path)", usual: 0, in: 0...(bytes.count - 1))
            let isLong = chance.outcome(
                chance.once(in: 2) ? 1 : 0, on: machine, "makes \(node.path) longer", usual: 0, in: 0...1)
            let length = isLong == 1 ? bytes.count : torn
            let rest = [UInt8](repeating: 0, count: length - torn)
            if length > 0 { kept.append(.write(Array(bytes.prefix(torn)) + rest, at: offset)) }
        }
        node.crash(keeping: kept)
    }
}
