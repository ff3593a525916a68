internal import RunLoopCore
internal import RunLoopUnix

/// The answer of the system's resolver to one look-up of a name. It comes on any thread, and goes to the loop as mail.
struct LookUp: Sendable {
    /// The tape of all look-ups.
    static let tape: UInt32 = .max - 1
    typealias Answer = Result<[Endpoint], HostResolver.Failure>

    /// The number of the sender of the answer.
    let sender: UInt32
    let answer: Answer

    private static let kinds: [HostResolver.Failure.Kind] = [.notFound, .unavailable, .timedOut, .invalidName, .other]

    static let coding = Coding<LookUp> { lookUp, bytes in
        bytes.put(Int(lookUp.sender))
        switch lookUp.answer {
        case .success(let addresses):
            bytes.put(true)
            Coding.list(.endpoint).encode(addresses, &bytes)
        case .failure(let failure):
            bytes.put(false)
            bytes.put(kinds.firstIndex(of: failure.kind)!)
            bytes.put(failure.name)
            bytes.put(failure.reason)
        }
    } decode: { bytes in
        let sender = UInt32(truncatingIfNeeded: bytes.number())
        guard !bytes.flag() else {
            return LookUp(sender: sender, answer: .success(Coding.list(.endpoint).decode(&bytes)))
        }
        let (kind, name, reason) = (bytes.number(), bytes.text(), bytes.text())
        let failure = HostResolver.Failure(
            kinds.indices.contains(kind) ? kinds[kind] : .other, name: name, reason: reason)
        return LookUp(sender: sender, answer: .failure(failure))
    }

    /// All look-ups of a tape, by the names.
    static func read(_ chunks: [UnsafeRawBufferPointer]) -> [String: [LookUp]] {
        var reader = TapeReader(chunks)
        var lookUps: [String: [LookUp]] = [:]
        while !reader.isAtEnd, reader.byte() == EventKind.lookUp.rawValue {
            var (name, bytes) = (ByteDecoder(reader.block()), ByteDecoder(reader.block()))
            lookUps[name.text(), default: []].append(coding.decode(&bytes))
        }
        return lookUps
    }
}

/// Names a thread of the resolver as the sender of an answer.
final class LookUpTape: Tape {
    override func posted(isRefused: Bool) -> Bool { isRefused }
}
