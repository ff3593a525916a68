/// A change of a member that must be on its disk before anybody learns of it.
enum Record: Hashable, Sendable {
    /// The member is in a term, and has voted for somebody there, or for nobody yet.
    case term(Int, vote: String?)
    /// An entry of the log, which replaces that at its index and all behind it.
    case entry(Entry, at: Int)
}

/// Something that a member does.
enum Action: Hashable, Sendable {
    case send(Message, to: String)
    /// The entry is committed: it is applied, after those before it.
    case apply(Entry, at: Int)
    /// The answer to a read may be the present value.
    case serve(read: Int)
    /// A read cannot be served: somebody else may lead.
    case refuse(read: Int)
}

/// The effects of an input on the world around a member: first the records are stored, and then the actions happen.
struct Effects: Hashable, Sendable {
    var records: [Record] = []
    var actions: [Action] = []
    /// Whether the time until the next election begins anew. That does not wait for the records.
    var restartsTimeout = false
}
