/// What the server knows of a client beside its connection.
final class Session {
    let number: Int
    var name: [UInt8] = []
    // What every request looks at is unchecked as in `Server`.
    /// The version of the protocol that it speaks.
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
    /// In the second version of the protocol, somebody who has subscribed can do little else.
    var onlyListens: Bool { isSubscribed && version == 2 }
}
