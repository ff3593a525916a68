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

    @Test("each byte of a key counts for its place, however long the key is")
    func everyByte() {
        for count in 1...40 {
            let bytes = (0..<count).map { UInt8($0) }
            func spread(_ bytes: [UInt8]) -> UInt64 { bytes.withUnsafeBytes(Key.spread) }
            var spreads = [spread(bytes), spread(bytes + [0]), spread(bytes.dropLast())]
            for index in 0..<count {
                for change in [1, 0x80] as [UInt8] {
                    var other = bytes
                    other[index] ^= change
                    spreads.append(spread(other))
                }
            }
            #expect(Set(spreads).count == spreads.count, "\(count) bytes")
            #expect(spread(bytes) == spread(Array(bytes)))
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
