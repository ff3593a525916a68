/// A leader's knowledge of the others.
struct Leadership {
    /// A leader's knowledge of a follower.
    struct Follower {
        /// Its log is known to be the leader's up to there.
        var matched = 0
        /// The next entry to send.
        var next: Int
        /// Whether the leader still looks for the place from which the logs differ. Until then it sends no entries.
        var isProbing = true
        /// The latest round that it has answered.
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
        /// The round that a majority has to answer: it has begun after the read.
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

    /// The largest value that so many members, the leader among them, have reached.
    func reached(by count: Int, own: Int, _ value: (Follower) -> Int) -> Int {
        (followers.values.map(value) + [own]).sorted(by: >)[count - 1]
    }
}
