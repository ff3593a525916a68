/// An event of a conversation.
struct Event: Sendable, Hashable {
    let side: Side.Name
    /// The result or the error.
    let text: String
    /// A number that chance decides.
    let count: Int?
    /// The time since the client began.
    let time: Duration
}
