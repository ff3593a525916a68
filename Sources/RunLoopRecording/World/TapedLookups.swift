@_spi(Ports) internal import RunLoopCore
@_spi(Ports) internal import RunLoopKit
@_spi(Ports) internal import RunLoopUnix

/// The look-ups of names in a recorded or replayed world. Each has a number of its own among the threads, and its
/// answer arrives as mail from that number: in a recording from a thread of the resolver, in a replay at once.
final class TapedLookups: HostLookups {
    typealias Answer = Result<[Endpoint], HostResolver.LookupError>

    private let tapes: Tapes
    private let state: Locked<State>

    private struct State {
        /// The tape of answers, and the real resolver's number for each of ours; in a recording.
        var tape: Tape?
        var numbers: [Int: Int] = [:]
        /// The answers; in a replay.
        var answers: [Int: Answer] = [:]
    }

    init(_ tapes: Tapes) {
        self.tapes = tapes
        var state = State()
        if let replay = tapes.replay {
            state.answers = Self.read(replay.contents[RecordLayout.lookUps])
        } else {
            state.tape = tapes.makeTape(number: RecordLayout.lookUps, named: "look-ups")
        }
        self.state = Locked(state)
    }

    func join(_ name: String, _ find: @escaping HostResolver.Finder, _ asker: @escaping Asker) -> Int {
        let number = tapes.call(.lookUp, [.text(name)], .int) { Int(tapes.takeNumber()) }
        if tapes.replay == nil {
            let real = HostResolver.sharedLookups[RunLoop.realWorld].join(name, find) { [self] _, answer in
                state.withLock { state in
                    state.numbers[number] = nil
                    _ = state.tape!.call(.answer, [.number(number)], .answer) { answer }
                }
                send(answer, number, to: asker)
            }
            state.withLock { $0.numbers[number] = real }
        } else if let answer = state.withLock({ $0.answers.removeValue(forKey: number) }) {
            send(answer, number, to: asker)
        }
        return number
    }

    func leave(_ name: String, _ number: Int) {
        guard let real = state.withLock({ $0.numbers.removeValue(forKey: number) }) else { return }
        HostResolver.sharedLookups[RunLoop.realWorld].leave(name, real)
    }

    /// Sends the answer to the loop as mail of the look-up's number.
    private func send(_ answer: Answer, _ number: Int, to asker: Asker) {
        let former = Tape.current
        let sender = Tape(number: UInt32(truncatingIfNeeded: number))
        Tape.current = sender
        asker(number, answer)
        Tape.current = former
        withExtendedLifetime(sender) {}
    }

    private static func read(_ tape: RecordedTape) -> [Int: Answer] {
        var reader = TapeReader(tape)
        var answers: [Int: Answer] = [:]
        while !reader.isAtEnd, reader.byte() == EventKind.answer.rawValue {
            var (number, answer) = (ByteDecoder(reader.block()), ByteDecoder(reader.block()))
            answers[number.number()] = Coding.answer.decode(&answer)
        }
        return answers
    }
}

extension Coding where Value == TapedLookups.Answer {
    private static var kinds: [HostResolver.LookupError.Kind] {
        [.notFound, .unavailable, .timedOut, .invalidName, .other]
    }

    static let answer = Coding { answer, bytes in
        switch answer {
        case .success(let addresses):
            bytes.put(true)
            Coding<[Endpoint]>.list(.endpoint).encode(addresses, &bytes)
        case .failure(let failure):
            bytes.put(false)
            bytes.put(kinds.firstIndex(of: failure.kind)!)
            bytes.put(failure.name)
            bytes.put(failure.reason)
        }
    } decode: { bytes in
        guard !bytes.flag() else { return .success(Coding<[Endpoint]>.list(.endpoint).decode(&bytes)) }
        let (kind, name, reason) = (bytes.number(), bytes.text(), bytes.text())
        return .failure(
            HostResolver.LookupError(kinds.indices.contains(kind) ? kinds[kind] : .other, name: name, reason: reason))
    }
}
