internal import RunLoopCore

/// A generator of evenly spread numbers that follow from a seed (SplitMix64).
@_spi(Ports) public struct SeededNumbers: RandomNumberGenerator {
    private var state: UInt64

    /// Creates the numbers of a seed.
    public init(seed: UInt64) {
        state = seed
    }

    /// Creates the numbers of one part of a simulation, which stay the same if another part takes more or fewer
    /// numbers.
    public init(seed: UInt64, for part: String) {
        // The standard library's hash differs between processes.
        let hash = part.utf8.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x0100_0000_01b3 }
        var mixed = SeededNumbers(seed: seed ^ hash)
        state = mixed.next()
    }

    /// Returns the next number.
    public mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }
}
