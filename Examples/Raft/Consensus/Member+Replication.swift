import RunLoopKit

// MARK: The leader's side

extension Member {
    /// Asks all others whether this member still leads, and sends the entries that they lack.
    mutating func askFollowers() {
        leadership?.round += 1
        for other in others { sendEntries(to: other) }
    }

    /// Adds a command to the log, if this member leads.
    ///
    /// - Returns: the index of the entry. If an entry with another term is applied there, the command never will be.
    mutating func propose(_ command: Command) -> Int? {
        guard let leadership else { return nil }
        let index = log.lastIndex + 1
        store(.entry(Entry(term: term, command: command), at: index))
        for other in others where !leadership.followers[other]!.isProbing { sendEntries(to: other) }
        commitWhatMajorityHas()
        return index
    }

    private mutating func sendEntries(to other: String) {
        guard let leadership, let follower = leadership.followers[other] else { return }
        let previous = follower.next - 1
        let entries = follower.isProbing ? [] : log.entries(from: follower.next, atMost: batch)
        // If the message is lost, the follower refuses the next one.
        self.leadership!.followers[other]!.next += entries.count
        send(
            .append(
                previous: previous, previousTerm: log.term(at: previous)!, entries: entries, commit: commit,
                round: leadership.round), to: other)
    }

    /// Takes an answer of a follower.
    mutating func hear(from other: String, _ round: Int, _ change: (inout Leadership.Follower) -> Void) {
        guard var follower = leadership?.followers[other] else { return }
        follower.round = max(follower.round, round)
        change(&follower)
        leadership!.followers[other] = follower
        commitWhatMajorityHas()
        serveReads()
        if follower.isProbing || follower.next <= log.lastIndex { sendEntries(to: other) }
    }

    /// Commits the entries that more than half of the members have.
    ///
    /// An entry of an earlier term is committed only with a later one of this term: otherwise a member without it could
    /// still be elected, and replace it (figure 8 of the paper).
    mutating func commitWhatMajorityHas() {
        guard let leadership else { return }
        // The leader sends an entry only after it has stored it.
        let index = leadership.reached(by: majority, own: log.lastIndex) { $0.matched }
        guard index > commit, log.term(at: index) == term else { return }
        RunLoop.sometimes(
            "an entry of an earlier term was committed with a later one", if: log.term(at: commit + 1)! < term)
        advanceCommit(to: index)
    }

    private mutating func advanceCommit(to index: Int) {
        while commit < index {
            commit += 1
            act(.apply(log[commit], at: commit))
        }
    }
}

// MARK: The follower's side

extension Member {
    mutating func append(
        _ entries: [Entry], behind previous: Int, _ previousTerm: Int, _ leaderCommit: Int, of leader: String,
        _ round: Int
    ) {
        follow(leader)
        restartTimeout()
        guard log.term(at: previous) == previousTerm else {
            return send(.mismatch(last: log.lastIndex, round: round), to: leader)
        }
        for (index, entry) in zip((previous + 1)..., entries) where log.term(at: index) != entry.term {
            RunLoop.sometimes("entries of another leader were replaced", if: index <= log.lastIndex)
            store(.entry(entry, at: index))
        }
        // Later entries may come from another leader.
        let matched = previous + entries.count
        advanceCommit(to: min(leaderCommit, matched))
        send(.appended(upTo: matched, round: round), to: leader)
    }
}
