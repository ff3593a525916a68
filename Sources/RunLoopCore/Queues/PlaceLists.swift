/// Lists of places, each found by the word that its members share, in the order in which they were added.
///
/// Adding, removing and finding a list are O(1) on average.
struct PlaceLists: ~Copyable {
    struct Member {
        var word: UInt64 = 0
        /// The previous member; for the first member of a list, the last one.
        var previous: Int32 = 0
        /// The next member; for the last member of a list, the first one.
        var next: Int32 = 0
    }

    /// The members, by place.
    private var members = Buffer<Member>()
    /// The first member of each list.
    private var firsts = HashIndex()

    /// Adds a place, which must be in no list, at the end of the list of `word`.
    mutating func append(_ place: Int, _ word: UInt64) {
        while members.count <= place { members.append(Member()) }
        let added = Int32(truncatingIfNeeded: place)
        assert(Int(added) == place, "a place does not fit its bits")
        guard let first = first(of: word) else {
            members[place] = Member(word: word, previous: added, next: added)
            return firsts.insert(place, word)
        }
        let last = members[first].previous
        assert(Int(members[Int(last)].next) == first, "a list is no ring")
        members[place] = Member(word: word, previous: last, next: members[Int(last)].next)
        members[Int(last)].next = added
        members[first].previous = added
    }

    mutating func remove(_ place: Int) {
        let member = members[place]
        let (previous, next) = (Int(member.previous), Int(member.next))
        assert(
            Int(members[previous].next) == place && Int(members[next].previous) == place,
            "a place was removed that is in no list")
        members[previous].next = member.next
        members[next].previous = member.previous
        guard first(of: member.word) == place else { return }
        if next == place { firsts.remove(place, member.word) } else { firsts.move(place, member.word, to: next) }
    }

    /// Returns the members of the list of `word`, in order.
    func all(of word: UInt64) -> [Int] {
        guard let first = first(of: word) else { return [] }
        var places = [first]
        while case let next = Int(members[places[places.count - 1]].next), next != first {
            assert(members[next].word == word, "a list has a member of another")
            places.append(next)
        }
        return places
    }

    /// Returns the word of the list that contains a place.
    func word(of place: Int) -> UInt64 { members[place].word }

    private func first(of word: UInt64) -> Int? { firsts.find(word) { members[$0].word == word } }
}
