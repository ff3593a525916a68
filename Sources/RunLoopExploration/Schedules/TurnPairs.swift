@_spi(Ports) internal import RunLoopSimulation

/// Notes pairs of consecutive turns of different lanes.
struct TurnPairs {
    /// The hash of each pair; some occur twice.
    private(set) var hashes: [UInt16] = []
    private var last: (lane: Int, hash: UInt64) = (-1, 0)
    private var nameHashes: [Int: UInt64] = [:]

    /// Notes the turn of a lane.
    mutating func note(_ lane: Int, at point: ChoicePoint) {
        let name = nameHashes[lane] ?? Self.hash(point.name(lane))
        nameHashes[lane] = name
        let hash = Self.mix(name, UInt64(point.turns(lane)))
        if lane != last.lane, last.lane >= 0 {
            hashes.append(UInt16(truncatingIfNeeded: Self.mix(last.hash, hash) >> 48))
        }
        last = (lane, hash)
    }

    /// Returns a hash that is equal in each process, unlike the hash of a `String`: FNV-1a.
    private static func hash(_ text: String) -> UInt64 {
        text.utf8.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x0100_0000_01b3 }
    }

    private static func mix(_ one: UInt64, _ other: UInt64) -> UInt64 {
        (one ^ other &* 0x9e37_79b9_7f4a_7c15).byteSwapped &* 0xff51_afd7_ed55_8ccd
    }
}
