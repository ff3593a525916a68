// Feeds libFuzzer's input to the framings of RunLoopUnix; compiled together with them by `make fuzz`.

/// The part of a connection that the framings need.
public final class Connection {
    public typealias ReceiveHandler = (Connection, Span<UInt8>) -> Int

    fileprivate(set) var isOpen = true
    fileprivate(set) var machine = Machine()
    fileprivate(set) var error: FramingError?

    struct Machine {
        fileprivate(set) var mayOfferMore = true
    }

    func receiveAgain() {
        precondition(!machine.mayOfferMore, "what is left unused is to be offered again though nothing keeps it")
    }

    func fail(_ error: any Error & Hashable & Sendable) {
        (isOpen, self.error) = (false, error as? FramingError)
    }
}

private struct Outcome: Equatable {
    var messages: [[UInt8]] = []
    var error: FramingError?
    /// The number of bytes used so far.
    var used = 0
}

/// A framing, a limit and a delimiter that the input chooses.
private struct Choice {
    let kind: Int
    let limit: Int
    let delimiter: [UInt8]

    init(_ kind: UInt8, limit: UInt8, _ bytes: UnsafeRawBufferPointer) {
        self.kind = Int(kind)
        self.limit = limit == .max ? .max : Int(limit)
        delimiter = Array(bytes.prefix(1 + self.kind / 8 % 3))
    }

    func framing(_ receive: @escaping Framing.MessageHandler) -> Connection.ReceiveHandler {
        switch kind % 4 {
        case 0: Framing.lines(upTo: limit, receive)
        case 1: Framing.delimited(by: delimiter, upTo: limit, receive)
        case 2: Framing.lengthPrefixed(width: 1 + kind / 8 % 8, upTo: limit, receive)
        default: Framing.lengthPrefixed(width: 1 + kind / 8 % 8, order: .littleEndian, upTo: limit, receive)
        }
    }

    /// The result of `bytes` that arrive in pieces of these sizes. A size of zero pauses before the next piece.
    func outcome(of bytes: UnsafeRawBufferPointer, pieces: @escaping (_ offer: Int) -> Int) -> Outcome {
        let connection = Connection()
        var outcome = Outcome()
        var (end, offers) = (0, 0)
        let receive = framing { connection, message in
            precondition(connection.isOpen && connection.machine.mayOfferMore, "a message that nobody may have")
            precondition(message.count <= limit, "a message beyond the limit")
            outcome.messages.append(message.withUnsafeBytes { Array($0) })
            connection.machine.mayOfferMore = pieces(offers + outcome.messages.count) > 0
        }
        while connection.isOpen && (end < bytes.count || !connection.machine.mayOfferMore) {
            if connection.machine.mayOfferMore { end = min(bytes.count, end + max(1, pieces(offers))) }
            connection.machine.mayOfferMore = true
            offers += 1
            // In memory of its own, so that a read beyond its end is found.
            let offered = UnsafeMutableRawBufferPointer.allocate(byteCount: end - outcome.used, alignment: 1)
            offered.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[outcome.used..<end]))
            let used = receive(connection, Span(_unsafeBytes: UnsafeRawBufferPointer(offered)))
            offered.deallocate()
            precondition(used >= 0 && used <= end - outcome.used, "more used than there was")
            outcome.used += used
        }
        outcome.error = connection.error
        return outcome
    }
}

/// Cuts the input into messages, whole and in pieces with pauses, and checks that they are the same.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let input = UnsafeRawBufferPointer(start: data, count: count)
    guard count > 8 else { return 0 }
    let bytes = UnsafeRawBufferPointer(rebasing: input[7...])
    let choice = Choice(input[0], limit: input[1], bytes)
    let whole = choice.outcome(of: bytes) { _ in Int.max / 2 }
    for cuts in [input[2..<3], input[2..<7]] {
        let pieces = choice.outcome(of: bytes) { Int(cuts[2 + $0 % cuts.count] % 16) }
        precondition(pieces == whole, "other messages in pieces")
    }
    if choice.kind % 4 == 1 {
        let used = whole.messages.flatMap { $0 + choice.delimiter }
        precondition(used.elementsEqual(bytes.prefix(whole.used)), "other bytes than came")
    }
    return 0
}
