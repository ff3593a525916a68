import RunLoopKit
import TestSupport
import Testing

@testable import RunLoopCore

@Suite("An index by hashes")
struct HashIndexTests {
    @Test("random operations agree with an array that is searched", arguments: seeds(usually: 4))
    func randomOperations(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var index = HashIndex()
        var words: [UInt64?] = []
        // Few words, so that many elements share one; or words that differ only in their upper half.
        let shift = seed.isMultiple(of: 2) ? 40 : 0 as UInt64
        for step in 0..<4000 {
            let isGrowing = step < 2000
            if generator.next() % 8 < (isGrowing ? 5 : 2) {
                let word = generator.next() % (seed < 6 ? 5 : 5000) << shift
                words.append(word)
                index.insert(words.count - 1, word)
            } else if let place = words.indices.randomElement(using: &generator), let word = words[place] {
                if generator.next() % 4 == 0 {
                    words.append(word)
                    words[place] = nil
                    index.move(place, word, to: words.count - 1)
                } else {
                    words[place] = nil
                    index.remove(place, word)
                }
            }
            if step % 64 == 0 { index.checkInvariants() }
            guard let place = words.indices.randomElement(using: &generator) else { continue }
            let found = words[place].flatMap { word in index.find(word) { $0 == place } }
            guard found == (words[place] == nil ? nil : place), index.count == words.count(where: { $0 != nil }) else {
                Issue.record("seed \(seed), step \(step): \(place) was not found, or found after it had gone")
                return
            }
        }
    }

    @Test("the lane of one of 10,000 sets of modes is found within a few steps")
    func manyModes() {
        var index = HashIndex()
        let modes = (0..<10_000).map { RunLoop.Modes(RunLoop.Mode("index \($0)")) }
        let memberships = modes.map { Membership.none.joining($0, common: ModeSet()) }
        for (place, membership) in memberships.enumerated() { index.insert(place, membership.word) }
        var comparisons = 0
        for (place, membership) in memberships.enumerated() {
            let found = index.find(membership.word) { candidate in
                comparisons += 1
                return memberships[candidate] == membership
            }
            #expect(found == place)
        }
        #expect(comparisons < 10_100)
        let steps = memberships.enumerated().reduce(0) { $0 + index.steps(to: $1.offset, $1.element.word) }
        #expect(steps < 40_000, "four steps each; a search from end to end would take 5,000")
    }
}
