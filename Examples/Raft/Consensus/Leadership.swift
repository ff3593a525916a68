/// A leader's knowledge of the others.
struct Leadership {
    /// A leader's knowledge of a follower.
    struct Follower {
        /// The index up to which the follower's log is known to equal the leader's.
        var matched = 0
        /// The next entry to send.
        var next: Int
        /// `true` while the leader still looks for the place from which the logs differ. Until then it sends no
        /// entries.
        var isProbing = true
        /// The latest round that the follower has answered.
        var round = 0

        mutating func matches(upTo index: Int) {
            matched = max(matched, index)
            if isProbing { next = matched + 1 }
            isProbing = false
        }

        mutating func differs(endingAt last: Int) {
            next = max(matched + 1, min(next - 1, last + 1))
            isProbing = true
        }
    }

    /// A read that waits until it is certain that no other member has committed later entries.
    struct Read {
        let number: Int
        /// The round that a majority has to answer, begun after the read.
        let round: Int
        /// The entry that has to be applied.
        let index: Int
    }

    /// The index of the leader's first entry.
    let first: Int
    var followers: [String: Follower]
    /// The number of times that the leader has asked the others whether it still leads.
    var round = 0
    var reads: [Read] = []

    /// - Parameter first: the index of the leader's first entry.
    init(over others: [String], first: Int) {
        self.first = first
        followers = Dictionary(uniqueKeysWithValues: others.map { ($0, Follower(next: first)) })
    }

    /// Returns the largest value that `count` members, including the leader, have reached.
    func reached(by count: Int, own: Int, _ value: (Follower) -> Int) -> Int {
        (followers.values.map(value) + [own]).sorted(by: >)[count - 1]
    }
}
