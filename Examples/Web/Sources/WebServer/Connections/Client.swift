/// A connection as its handlers see it.
struct Client: Sendable {
    let site: Site
    /// The limits when it connected.
    let limits: Limits
    /// Its address in digits.
    let peer: String
    /// The limit that refuses all its requests.
    let refusal: Refusal.Limit?
}
