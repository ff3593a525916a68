/// A connection as its handlers see it.
struct Client: Sendable {
    let site: Site
    /// The limits when the client connected.
    let limits: Limits
    /// The client's address in digits.
    let peer: String
    /// The limit that refuses all the client's requests.
    let refusal: Refusal.Limit?
}
