import RunLoopKit
import TestSupport
import Testing

@testable import RunLoopRecording

@Suite struct DamagedRecordTests {
    /// Events of all kinds, with the numbers that are easily mistaken for something else.
    @Test(arguments: seeds(usually: 1)) func `a record of any events is read without harm`(seed: UInt64) throws {
        let record = RecordPath()
        try withRecording(to: record.path) { _ in }
        let whole = record.bytes
        let start = RecordLayout.pageSize + RecordLayout.chunkHead
        var random = SeededGenerator(seed: seed)
        func number() -> Int {
            [
                0, 1, -1, .max, .min, .max - 1, Int(Int32.max) + 1, Int(UInt32.max),
                Int.random(in: -99...99, using: &random),
            ]
            .randomElement(using: &random)!
        }
        func numbers(_ count: Int) -> [UInt8] {
            var bytes = ByteEncoder()
            for _ in 0..<count { bytes.put(number()) }
            return bytes.bytes
        }
        for _ in 0..<300 {
            var tape = ByteEncoder()
            for _ in 0..<Int.random(in: 1...30, using: &random) {
                let kind = EventKind(rawValue: UInt8.random(in: 1...100, using: &random))
                switch kind ?? [.makeThread, .accept, .write, .read].randomElement(using: &random)! {
                case let kind where [.read, .write, .send, .wait].contains(kind):
                    tape.put(unsigned: UInt64(kind.rawValue))
                    for _ in 0..<4 { tape.put(number()) }
                case let kind:
                    tape.put(unsigned: UInt64(kind.rawValue))
                    tape.put(numbers(Int.random(in: 0...3, using: &random)))
                    tape.put(numbers(Int.random(in: 0...3, using: &random)))
                }
            }
            var changed = whole
            let bytes = tape.bytes.prefix(whole.count - start)
            changed.replaceSubrange(start..<start + bytes.count, with: bytes)
            let used = UInt64(RecordLayout.chunkHead + bytes.count)
            let field = RecordLayout.pageSize + RecordLayout.ChunkField.numberAndUsed.rawValue * 8
            for index in 0..<4 { changed[field + index] = UInt8(truncatingIfNeeded: used >> (8 * index)) }
            record.bytes = changed
            let read = try Record(contentsOf: record.path)
            _ = (read.description, read.clients.count)
        }
    }
}
