@testable import Raft

/// The promises of section 5 of the paper, for all members together. Each member is checked after each of its steps.
struct ClusterCheck {
    private(set) var failures: [String] = []
    /// The last known state of each member, which a crash leaves.
    private var members: [String: View] = [:]
    private var leaders: [Int: String] = [:]
    /// The entries that any member has committed.
    private var committed = Log()
    /// The term in which the last committed entry was committed.
    private var commitTerm = 0

    /// A member from the point of view of the others.
    private struct View {
        var term: Int
        var log: Log
        var isLeader = false
        var told = Told()

        /// Returns `true` if another member would vote for this one because of its log.
        func isAsUpToDate(as other: Self) -> Bool {
            (log.lastTerm, log.lastIndex) >= (other.log.lastTerm, other.log.lastIndex)
        }
    }

    /// The state of a member that others have learned of.
    private struct Told {
        var term = 0
        /// The member's vote in that term.
        var vote: String?
        /// The last entry that the member has acknowledged, if that was not replaced.
        var entry: (index: Int, term: Int)?
    }

    mutating func fail(_ text: String) {
        if failures.count < 10 { failures.append(text) }
    }

    /// The leader with the latest term.
    var leader: String? { members.filter(\.value.isLeader).max { $0.value.term < $1.value.term }?.key }

    // MARK: Events

    /// Notes that a member begins with the state that has survived.
    mutating func memberBegins(_ name: String, _ stored: Member.Stored) {
        let told = members[name]?.told ?? Told()
        members[name] = View(term: stored.term, log: stored.log, told: told)
        if stored.term < told.term {
            fail("a member has forgotten a term after its messages had it")
        } else if stored.term == told.term, told.vote != nil, stored.vote != told.vote {
            fail("a member has forgotten its vote after it had answered")
        }
        if let (index, term) = told.entry, stored.log.term(at: index) != term {
            fail("a member has forgotten the entry \(index) after it had acknowledged it")
        }
    }

    /// Notes that a member sends a message.
    mutating func memberSends(_ name: String, _ message: Message, to other: String) {
        let member = members[name]!
        var told = member.told
        if message.term > told.term { (told.term, told.vote) = (message.term, nil) }
        switch message.body {
        case .vote(isGranted: true) where message.term == told.term: told.vote = other
        // In a later term the entry may have been replaced meanwhile.
        case .appended(let index, _) where message.term == member.term && index > told.entry?.index ?? 0:
            told.entry = member.log.term(at: index).map { (index, $0) }
        default: break
        }
        members[name]!.told = told
    }

    /// Notes that a member has made a step, with the given effects.
    mutating func memberSteps(_ member: Member, _ effects: Effects) {
        let wasLeader = members[member.name]!.isLeader
        (members[member.name]!.term, members[member.name]!.isLeader) = (member.term, member.isLeader)
        for case .entry(let entry, let index) in effects.records { memberAdds(member.name, entry, index) }
        if member.isLeader && !wasLeader { memberLeads(member.name) }
        for action in effects.actions {
            switch action {
            case .apply(let entry, let index): memberCommits(entry, index, in: member.term)
            case .send(let message, let other): memberAcknowledges(member.name, message, to: other)
            case .serve, .refuse: break
            }
        }
    }

    // MARK: Promises

    /// Checks that no term has two leaders, and that a leader has all entries committed in earlier terms. The votes for
    /// a leader may come late, when a later one has already committed more.
    private mutating func memberLeads(_ name: String) {
        let member = members[name]!
        let first = leaders[member.term, default: name]
        leaders[member.term] = first
        if first != name { fail("term \(member.term) has two leaders") }
        if member.term > commitTerm, member.log.term(at: committed.lastIndex) != committed.lastTerm {
            fail("a leader does not have the committed entry \(committed.lastIndex)")
        }
    }

    /// Checks that two logs with an entry of one index and term have the same entries up to there, by comparing this
    /// one and the term of the one before it, to which the check has been applied.
    private mutating func memberAdds(_ name: String, _ entry: Entry, _ index: Int) {
        members[name]!.log.put(entry, at: index)
        if let last = members[name]!.told.entry, last.index >= index { members[name]!.told.entry = nil }
        let previousTerm = members[name]!.log.term(at: index - 1)
        for (other, view) in members where other != name && view.log.term(at: index) == entry.term {
            if view.log[index] != entry { fail("the entry \(index) of a term is not the same everywhere") }
            if view.log.term(at: index - 1) != previousTerm {
                fail("logs have the same entry \(index), and differ before")
            }
        }
    }

    /// Checks that a follower acknowledges entries that it has. The leader of a term has all of its entries as long as
    /// it leads.
    private mutating func memberAcknowledges(_ name: String, _ message: Message, to other: String) {
        guard case .appended(let index, _) = message.body, let leader = members[other],
            leader.isLeader && leader.term == message.term,
            members[name]!.log.term(at: index) != leader.log.term(at: index)
        else { return }
        fail("a member has acknowledged the entry \(index), and has another one")
    }

    /// Checks that the entry at an index is the same wherever it is committed, and stays: without it, no member can be
    /// elected.
    private mutating func memberCommits(_ entry: Entry, _ index: Int, in term: Int) {
        guard index > committed.lastIndex else {
            if entry != committed[index] { fail("the committed entry \(index) is not the same everywhere") }
            return
        }
        committed.put(entry, at: index)
        commitTerm = term
        let majority = members.count / 2 + 1
        for candidate in members.values where candidate.log.term(at: index) != entry.term {
            guard members.values.count(where: { candidate.isAsUpToDate(as: $0) }) >= majority else { continue }
            return fail("a member without the committed entry \(index) can be elected")
        }
    }
}
