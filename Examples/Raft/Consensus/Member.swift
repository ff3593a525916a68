import RunLoopKit

/// A member of a cluster: the algorithm Raft, of Ongaro and Ousterhout, as a value.
///
/// Each input, such as a message or the end of a timeout, changes the value. The caller then takes the ``Effects`` and
/// carries them out, in order; the value itself knows no clock, no disk and no connection.
struct Member {
    /// The parts that survive a crash.
    struct Stored: Sendable {
        var term = 0
        var vote: String?
        var log = Log()
    }

    enum Role {
        case follower(of: String?)
        case candidate(votes: Set<String>)
        case leader(Leadership)
    }

    let name: String
    /// The other members, in the order of their names, so that a simulation always has the same order.
    let others: [String]
    /// The largest number of entries in a message.
    let batch: Int

    var stored: Stored
    var role = Role.follower(of: nil)
    /// The index up to which entries are committed and applied.
    var commit = 0
    private(set) var effects = Effects()

    init(_ name: String, among members: [String], _ stored: Stored = Stored(), batch: Int = 64) {
        (self.name, self.stored, self.batch) = (name, stored, batch)
        others = members.filter { $0 != name }.sorted()
    }

    var term: Int { stored.term }
    var log: Log { stored.log }
    /// The smallest number of members, including this one, that is more than half of all.
    var majority: Int { (others.count + 1) / 2 + 1 }

    /// The leadership of this member, if it leads.
    var leadership: Leadership? {
        get { if case .leader(let leadership) = role { leadership } else { nil } }
        set { if let newValue { role = .leader(newValue) } }
    }

    var isLeader: Bool { leadership != nil }

    /// The leader of the present term, if known.
    var leader: String? {
        switch role {
        case .leader: name
        case .follower(let leader): leader
        case .candidate: nil
        }
    }

    // MARK: Inputs

    mutating func receive(_ message: Message, from sender: String) {
        if message.term > term { enter(message.term) }
        guard message.term == term else {
            // A request from a past term: its sender learns of the present one.
            switch message.body {
            case .requestVote: send(.vote(isGranted: false), to: sender)
            case .append(_, _, _, _, let round): send(.mismatch(last: log.lastIndex, round: round), to: sender)
            case .vote, .appended, .mismatch: break
            }
            return
        }
        switch message.body {
        case .requestVote(let lastIndex, let lastTerm): answer(sender, whoseLogEndsAt: lastIndex, lastTerm)
        case .vote(let isGranted): if isGranted { take(voteOf: sender) }
        case .append(let previous, let previousTerm, let entries, let commit, let round):
            append(entries, behind: previous, previousTerm, commit, of: sender, round)
        case .appended(let index, let round): hear(from: sender, round) { $0.matches(upTo: index) }
        case .mismatch(let last, let round): hear(from: sender, round) { $0.differs(endingAt: last) }
        }
    }

    /// Gives a leader's sign of life after an interval, or asks again as a candidate, because messages may be lost.
    mutating func beat() {
        switch role {
        case .follower: break
        case .candidate: askForVotes()
        case .leader: askFollowers()
        }
    }

    /// Returns the effects of the inputs since the last call.
    mutating func takeEffects() -> Effects {
        defer { effects = Effects() }
        return effects
    }

    // MARK: Effects

    mutating func send(_ body: Message.Body, to other: String) {
        effects.actions.append(.send(Message(term: term, body: body), to: other))
    }

    mutating func act(_ action: Action) {
        effects.actions.append(action)
    }

    mutating func store(_ record: Record) {
        switch record {
        case .term(let term, let vote): (stored.term, stored.vote) = (term, vote)
        case .entry(let entry, let index): stored.log.put(entry, at: index)
        }
        effects.records.append(record)
    }

    mutating func restartTimeout() {
        effects.restartsTimeout = true
    }

    /// Enters a later term, in which this member has not voted yet.
    private mutating func enter(_ term: Int) {
        RunLoop.sometimes("a leader was deposed", if: isLeader)
        store(.term(term, vote: nil))
        follow(nil)
    }

    mutating func follow(_ leader: String?) {
        RunLoop.sometimes("a read was refused, because another member leads", if: leadership?.reads.isEmpty == false)
        for read in leadership?.reads ?? [] { act(.refuse(read: read.number)) }
        role = .follower(of: leader)
    }
}
