import Glibc

/// Returns bytes that are the same for the same seed. Quick without an optimizer, too.
package func randomBytes(_ count: Int, using generator: inout SeededGenerator) -> [UInt8] {
    // The library would write to the storage that all empty arrays share.
    guard count > 0 else { return [] }
    return [UInt8](unsafeUninitializedCapacity: count) { memory, initialized in
        let memory = UnsafeMutableRawBufferPointer(memory)
        for offset in stride(from: 0, to: count, by: 8) {
            withUnsafeBytes(of: generator.next()) {
                UnsafeMutableRawBufferPointer(rebasing: memory[offset...])
                    .copyMemory(from: UnsafeRawBufferPointer(rebasing: $0.prefix(count - offset)))
            }
        }
        initialized = count
    }
}

/// Returns bytes for a seed of their own.
package func randomBytes(_ count: Int, seed: UInt64) -> [UInt8] {
    var generator = SeededGenerator(seed: seed)
    return randomBytes(count, using: &generator)
}

/// Returns `true` if both have the same bytes. Quick without an optimizer, too.
package func areSame(_ one: some Collection<UInt8>, _ other: some Collection<UInt8>) -> Bool {
    guard one.count == other.count, !one.isEmpty else { return one.count == other.count }
    return one.withContiguousStorageIfAvailable { one in
        other.withContiguousStorageIfAvailable { memcmp(one.baseAddress!, $0.baseAddress!, one.count) == 0 }
    }.flatMap(\.self) ?? one.elementsEqual(other)
}
