/// A change of a member that must be on its disk before other members or clients learn of it.
enum Record: Hashable, Sendable {
    /// The member's term, and its vote there, if any.
    case term(Int, vote: String?)
    /// An entry of the log, which replaces the entry at its index and all later ones.
    case entry(Entry, at: Int)
}

/// An action of a member.
enum Action: Hashable, Sendable {
    case send(Message, to: String)
    /// The entry is committed: it is applied, after the ones before it.
    case apply(Entry, at: Int)
    /// The answer to a read may be the present value.
    case serve(read: Int)
    /// A read cannot be served: another member may lead.
    case refuse(read: Int)
}

/// The effects of an input on the world around a member: first the records are stored, and then the actions happen.
struct Effects: Hashable, Sendable {
    var records: [Record] = []
    var actions: [Action] = []
    /// `true` if the time until the next election begins anew, which does not wait for the records.
    var restartsTimeout = false
}
