import Testing

@testable import TTLStore

@Suite("Keys")
struct KeyTests {
    @Test("keys are equal if all their bytes are")
    func equality() {
        let keys = ["", "a", "b", "aa", "ab", "a\0", "longer than eight bytes", "longer than eight bytez"].map {
            Key([UInt8]($0.utf8))
        }
        for (index, key) in keys.enumerated() {
            #expect(keys.indices.filter { keys[$0] == key } == [index])
            #expect(key == Key([UInt8](key.bytes)) && key.hashValue == Key([UInt8](key.bytes)).hashValue)
        }
    }

    @Test("pairs of words that undo each other in a product do not bring keys to one place")
    func chosenKeys() {
        // The highest bit of a word stays the highest in a product by an odd number.
        let pairs = [[UInt8](repeating: 0, count: 16), [0, 0, 0, 0, 0, 0, 0, 0x80, 0, 0, 0, 0x80, 0, 0, 0, 0x80]]
        let keys = (0..<256).map { number in Key((0..<8).flatMap { pairs[number >> $0 & 1] }) }
        // 248 of them on average.
        #expect(Set(keys.map(\.shard)).count > 200)
    }
}
