import RunLoopKit
import TestSupport
import Testing

@testable import RunLoopRecording

@Suite struct DamagedRecordTests {
    /// A record with events of all kinds, and with the numbers that are easily mistaken for something else.
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
            let state = ChunkState(number: 0, used: RecordLayout.chunkHead + bytes.count, sum: 0)
            let field = RecordLayout.pageSize + RecordLayout.ChunkField.state.rawValue * 8
            for index in 0..<8 { changed[field + index] = UInt8(truncatingIfNeeded: state.word >> UInt64(8 * index)) }
            record.bytes = changed
            let read = try Record(contentsOf: record.path)
            _ = (read.description, read.clients.count)
        }
    }

    @Test(arguments: seeds(usually: 1)) func `a changed byte is reported before the program begins`(seed: UInt64) throws
    {
        let record = RecordPath()
        let log = try withRecording(to: record.path) { tick($0, times: 30) }
        let whole = record.bytes
        let used = ChunkState(word: record.word(at: RecordLayout.pageSize + 16)).used
        let head = RecordLayout.argumentsStart + Int(record.word(at: RecordLayout.Field.argumentsLength.rawValue * 8))
        // The first page without the count of foreign calls, and the chunk with its head.
        let places =
            Array(0..<RecordLayout.Field.foreignCalls.rawValue * 8) + Array(RecordLayout.argumentsStart..<head)
            + Array(RecordLayout.pageSize..<RecordLayout.pageSize + 24)
            + Array(RecordLayout.pageSize + RecordLayout.chunkHead..<RecordLayout.pageSize + used)
        var random = SeededGenerator(seed: seed)
        for place in places.shuffled(using: &random).prefix(300) {
            var changed = whole
            changed[place] ^= UInt8.random(in: 1...255, using: &random)
            record.bytes = changed
            let outcome = replay(record) { tick($0, times: 30) }
            switch outcome {
            case .failed(RecordError.damaged), .failed(RecordError.notARecord): continue
            // Only in the fields for the size of the file and for a further file.
            case .ended(.endOfRecord(.cut)) where (12 * 8..<14 * 8).contains(place): continue
            case .returned(log) where (12 * 8..<14 * 8).contains(place): continue
            default: Issue.record("the byte at \(place) was changed, seed \(seed): \(outcome)")
            }
        }
    }

    @Test func `a missing piece between others is reported with its thread`() throws {
        let record = RecordPath()
        var options = RecordingOptions()
        options.chunkSize = 256
        _ = try withRecording(to: record.path, options: options) { tick($0, times: 200) }
        var changed = record.bytes
        // The third chunk has no chunk's mark.
        changed[RecordLayout.pageSize + 3 * 256] = 0
        record.bytes = changed
        let outcome = replay(record) { tick($0, times: 200) }
        guard case .failed(RecordError.damaged(record.path, let place)) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(place == "in thread 0, of which a piece is missing")
        #expect(try Record(contentsOf: record.path).end == .damaged(place))
    }
}
