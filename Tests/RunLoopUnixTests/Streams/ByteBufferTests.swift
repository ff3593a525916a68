import TestSupport
import Testing

@_spi(Ports) @testable import RunLoopUnix

@Suite("The buffer of bytes")
struct ByteBufferTests {
    @Test("returns the bytes in order, and takes at most twice the memory of its largest contents")
    func model() {
        for seed in UInt64(0)..<200 {
            var random = SeededGenerator(seed: seed)
            let first = Int.random(in: 1...100, using: &random)
            let limit = Int.random(in: 1...2000, using: &random)
            let buffer = ByteBuffer(capacity: first)
            var model: [UInt8] = []
            var most = 0
            /// A small amount, or any amount up to all, equally often.
            func amount(of all: Int) -> Int {
                Int.random(in: 0...(Bool.random(using: &random) ? all : min(all, 50)), using: &random)
            }
            for _ in 0..<200 {
                let piece = randomBytes(amount(of: limit - model.count), using: &random)
                piece.withUnsafeBytes { buffer.append($0) }
                model += piece
                most = max(most, model.count)
                #expect(areSame(buffer.bytes, model), "seed \(seed)")
                let gone = amount(of: model.count)
                buffer.discard(gone)
                model.removeFirst(gone)
                #expect(areSame(buffer.bytes, model), "seed \(seed)")
            }
            #expect(buffer.capacity <= max(first, 2 * most), "seed \(seed)")
        }
    }
}
