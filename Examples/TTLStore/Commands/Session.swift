/// The state of a client besides its connection.
final class Session {
    let number: Int
    var name: [UInt8] = []
    /// Sends it bytes outside of its requests; set by the owner of the connection.
    var deliver: ([UInt8]) -> Void = { _ in }
    // The properties used by every request are unchecked as in `Server`.
    /// The version of the protocol that the client speaks.
    @exclusivity(unchecked) var version = 2
    var channels: Set<[UInt8]> = [] { didSet { isSubscribed = subscriptions > 0 } }
    var patterns: Set<[UInt8]> = [] { didSet { isSubscribed = subscriptions > 0 } }
    /// Set by QUIT: the replies so far are the last.
    @exclusivity(unchecked) var isOver = false

    init(number: Int = 0) {
        self.number = number
    }

    @exclusivity(unchecked) private(set) var isSubscribed = false
    var subscriptions: Int { channels.count + patterns.count }
    /// `true` if only a few commands are allowed: in the second version of the protocol, for a subscribed client.
    var onlyListens: Bool { isSubscribed && version == 2 }
}
