internal import Glibc
internal import RunLoopCore

/// The chunks of a tape, in their order, and the sum of their bytes.
struct RecordedTape {
    let number: UInt32
    var chunks: [UnsafeRawBufferPointer] = []
    var sum: UInt16

    init(number: UInt32) {
        (self.number, sum) = (number, TapeCheck(ofTape: number).short)
    }
}

/// A record as it is read: its head, and the tapes. Any thread.
final class RecordContents: Sendable {
    let process: Int
    let wallTime: RunLoop.WallTime
    let seeds: (UInt64, UInt64)
    let keepsPayloads: Bool
    let keepsOutput: Bool
    let foreignCalls: Int
    let arguments: [String]
    let end: RecordEnd
    // Unsafe, because they point to memory, which does not change. The parts and the tails keep it.
    private nonisolated(unsafe) let parts: [RecordPart], tails: [RecordTail]
    nonisolated(unsafe) let tapes: [UInt32: RecordedTape]

    init(_ path: String) throws(RecordError) {
        // Two looks, because the process may be writing: a chunk that follows a tail of the first look is in the second
        // one.
        let (early, lacksPart) = try Self.parts(path)
        // Before the tails, which are then at least as long.
        let noted = (early.last![.end], early.map { $0[.size] })
        tails = early.flatMap(\.tails)
        parts = try Self.parts(path).parts
        let head = parts[0]
        process = Int(clamping: head[.process])
        wallTime = RunLoop.WallTime(nanoseconds: Int64(bitPattern: head[.wallTime]))
        seeds = (head[.seed0], head[.seed1])
        keepsPayloads = head[.keepsPayloads] != 0
        keepsOutput = head[.keepsOutput] != 0
        foreignCalls = parts.reduce(0) { $0 &+ Int(clamping: $1[.foreignCalls]) }
        arguments = head.arguments
        let places = parts.flatMap(\.places)
        let collected = Self.collect(places, tails)
        tapes = collected.tapes
        let isCut = lacksPart || zip(noted.1, parts).contains { $0 > $1.count }
        end =
            if isCut {
                .cut
            } else if let tape = collected.incomplete {
                .damaged("in \(Self.name(ofTape: tape)), of which a piece is missing")
            } else {
                Self.end(noted.0, ProcessLife.sum(of: process) == head[.life] ? process : nil, places)
            }
    }

    /// - Parameters:
    ///   - word: the noted end.
    ///   - process: the recorded process, if it runs.
    private static func end(_ word: UInt64, _ process: Int?, _ places: [RecordPart.Place?]) -> RecordEnd {
        // The last place may have been taken and not described.
        let isDescribed = places.dropLast().allSatisfy { $0 != nil }
        guard isDescribed, word == 0 || RecordEnd(word: word) != nil,
            RecordEnd(word: word) != .closed || places.last.map({ $0 != nil }) ?? true
        else { return .damaged(isDescribed ? "in its first page" : "at the begin of a chunk") }
        return RecordEnd(word: word) ?? process.map { .beingWritten(process: $0) } ?? .processEnded
    }

    private static func parts(_ path: String) throws(RecordError) -> (parts: [RecordPart], lacksOne: Bool) {
        var parts = [try RecordPart(path, part: 1)]
        while parts.last![.isContinued] != 0 {
            do throws(RecordError) {
                parts.append(try RecordPart(path, part: parts.count + 1))
            } catch {
                if case .file(_, errno: ENOENT) = error { return (parts, true) }
                throw error
            }
        }
        return (parts, false)
    }

    /// Returns the tapes, and one of them that lacks a chunk between others.
    private static func collect(
        _ places: [RecordPart.Place?], _ tails: [RecordTail]
    ) -> (tapes: [UInt32: RecordedTape], incomplete: UInt32?) {
        var chunks: [UInt32: [UInt64: (content: UnsafeRawBufferPointer, sum: UInt16)]] = [:]
        for case let place? in places where !place.isTail {
            chunks[place.tape, default: [:]][place.state.number] = (place.content, place.state.sum)
        }
        // A moved tail is written behind the others before it is used again.
        for tail in tails where chunks[tail.tape]?[tail.state.number] == nil {
            chunks[tail.tape, default: [:]][tail.state.number] = (tail.content, tail.state.sum)
        }
        var tapes: [UInt32: RecordedTape] = [:]
        for (number, numbered) in chunks {
            var tape = RecordedTape(number: number)
            while let chunk = numbered[UInt64(tape.chunks.count)] {
                tape.chunks.append(chunk.content)
                tape.sum = chunk.sum
            }
            tapes[number] = tape
        }
        return (tapes, tapes.keys.sorted().first { tapes[$0]!.chunks.count < chunks[$0]!.count })
    }

    subscript(number: UInt32) -> RecordedTape { tapes[number] ?? RecordedTape(number: number) }

    static func name(ofTape number: UInt32) -> String {
        number == RecordLayout.lookUps ? "the answers to look-ups" : "thread \(number)"
    }
}
