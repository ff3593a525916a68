import ExampleTestSupport
import RunLoopSimulation
import Testing

@testable import TTLStore

@Suite("Files of frames")
struct FrameTests {
    /// Returns a file with frames of random changes, and the beginning of each frame.
    private func file(_ kind: Frame.Kind, frames: Int, seed: UInt64) -> (bytes: [UInt8], starts: [Int]) {
        withSimulation { simulation in
            var random = SeededGenerator(seed: seed)
            let store = Shop.store(simulation)
            var changes: [UInt8] = []
            store.changeHandler = { Record.append($0, to: &changes) }
            var bytes = Array(kind.rawValue.utf8)
            var starts: [Int] = []
            var sum: UInt32 = 0
            for _ in 0..<frames {
                while changes.isEmpty || Bool.random(using: &random) { store.change(using: &random, keys: 10) }
                starts.append(bytes.count)
                sum = changes.withUnsafeBytes { Checksum.of($0, after: sum) }
                bytes += Frame.head(length: changes.count, sum: sum) + changes
                changes = []
            }
            if kind == .snapshot {
                starts.append(bytes.count)
                bytes += Frame.head(length: 0, sum: sum)
            }
            store.changeHandler = nil
            return (bytes, starts)
        }
    }

    private func extent(_ bytes: [UInt8], _ kind: Frame.Kind) throws(Frame.Broken) -> Int {
        let count = bytes.withUnsafeBytes { bytes in
            Result { () throws(Frame.Broken) in try Frame.read(bytes, kind) { _ in }.end }
        }
        return try count.get()
    }

    @Test("the checksum is CRC-32C, in pieces as in one")
    func checksum() {
        let text = Array("123456789".utf8)
        #expect(text.withUnsafeBytes { Checksum.of($0) } == 0xE306_9283)
        #expect([UInt8](repeating: 0, count: 32).withUnsafeBytes { Checksum.of($0) } == 0x8A91_36AA)
        let first = text[..<4].withUnsafeBytes { Checksum.of($0) }
        #expect(text[4...].withUnsafeBytes { Checksum.of($0, after: first) } == 0xE306_9283)
    }

    @Test("any bit that is flipped in a snapshot is noticed", arguments: 0..<3)
    func flippedBits(seed: UInt64) throws {
        let (bytes, _) = file(.snapshot, frames: 5, seed: seed)
        #expect(try extent(bytes, .snapshot) == bytes.count)
        for index in bytes.indices {
            for bit in 0..<8 {
                var damaged = bytes
                damaged[index] ^= 1 << UInt8(bit)
                #expect(throws: Frame.Broken.self, "byte \(index), bit \(bit), seed \(seed)") {
                    try extent(damaged, .snapshot)
                }
            }
        }
    }

    @Test("a snapshot that is not whole, or longer, is refused", arguments: 0..<3)
    func parts(seed: UInt64) throws {
        let (bytes, _) = file(.snapshot, frames: 5, seed: seed)
        for count in 0..<bytes.count {
            #expect(throws: Frame.Broken.self, "\(count) bytes, seed \(seed)") {
                try extent(Array(bytes[..<count]), .snapshot)
            }
        }
        #expect(throws: Frame.Broken.self) { try extent(bytes + [0], .snapshot) }
        #expect(throws: Frame.Broken.self) { try extent(bytes, .log) }
    }

    @Test("a log that ends anywhere is read up to its last whole frame", arguments: 0..<3)
    func torn(seed: UInt64) throws {
        let (bytes, starts) = file(.log, frames: 8, seed: seed)
        let ends = starts + [bytes.count]
        for count in starts[0]...bytes.count {
            let expected = ends.last { $0 <= count }
            #expect(try extent(Array(bytes[..<count]), .log) == expected, "\(count) bytes, seed \(seed)")
            // After a loss of power there may be zeros.
            let zeros = [UInt8](repeating: 0, count: 100)
            #expect(try extent(bytes[..<count] + zeros, .log) == expected, "\(count) bytes and zeros, seed \(seed)")
        }
    }

    @Test("a log that is damaged before its last frame is refused, with the place", arguments: 0..<3)
    func damaged(seed: UInt64) {
        let (bytes, starts) = file(.log, frames: 8, seed: seed)
        for index in 0..<starts.last! {
            var damaged = bytes
            damaged[index] ^= 0x10
            #expect(
                throws: Frame.Broken(offset: starts.last { $0 <= index } ?? 0), "byte \(index), seed \(seed)"
            ) { try extent(damaged, .log) }
        }
        // A frame that is missing, and two in the wrong order.
        #expect(throws: Frame.Broken.self) { try extent(Array(bytes[..<starts[2]] + bytes[starts[3]...]), .log) }
        #expect(throws: Frame.Broken.self) {
            try extent(
                Array(
                    bytes[..<starts[2]] + bytes[starts[3]..<starts[4]] + bytes[starts[2]..<starts[3]]
                        + bytes[starts[4]...]),
                .log)
        }
    }

    @Test("a dump holds the store's contents at the dump's end, regardless of changes meanwhile", arguments: 0..<10)
    func dump(seed: UInt64) {
        withSimulation { simulation in
            var random = SeededGenerator(seed: seed)
            let store = Shop.store(simulation)
            for _ in 0..<20_000 { store.change(using: &random, keys: 20_000) }
            let dump = Dump(pieceSize: 40_000)
            store.changeHandler = { dump.note($0) }
            let copy = Shop.store(simulation)
            var pieces = 0
            while !dump.isComplete {
                let frame = dump.next(of: store.table)
                #expect(frame.withUnsafeBytes { Record.read($0, copy.restore) })
                pieces += 1
                if dump.isComplete { break }
                for _ in 0..<1_000 { store.change(using: &random, keys: 20_000) }
                if pieces == 3, seed == 0 { store.removeAll() }
            }
            #expect(pieces > 2, "seed \(seed)")
            copy.endRestoring()
            #expect(copy.contents == store.contents, "seed \(seed)")
            store.changeHandler = nil
        }
    }
}
