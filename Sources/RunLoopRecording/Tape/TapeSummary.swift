/// A summary of a tape, whose events are counted and compared with the sums among them.
struct TapeSummary {
    private(set) var events: UInt64 = 0
    /// The threads that were made, with their names.
    private(set) var threads: [(number: UInt32, name: String)] = []
    /// The range of events in which bytes have changed; `nil` if none have.
    private(set) var damage: ClosedRange<UInt64>?

    /// Reads the whole tape. O(bytes).
    init(_ tape: RecordedTape, _ contents: RecordContents) {
        var reader = TapeReader(tape)
        /// The last event whose sum was right.
        var checked: UInt64 = 0
        while !reader.isAtEnd {
            let sum = reader.check.short
            guard pass(&reader, sum, contents, &checked) else {
                damage = checked...events
                return
            }
            // The process may have ended within the last event.
            if !reader.isOver { events += 1 }
        }
        if reader.check.short != tape.sum { damage = checked...max(checked, events) }
    }

    /// Passes over an event.
    ///
    /// - Returns: `false` if there is no valid event, or if its sum does not match the bytes before.
    private mutating func pass(
        _ reader: inout TapeReader, _ sum: UInt16, _ contents: RecordContents, _ checked: inout UInt64
    ) -> Bool {
        if reader.next >= 0x80 {
            _ = EventText.time(&reader, after: 0)
            return true
        }
        guard let kind = EventKind(rawValue: reader.byte()) else { return false }
        switch kind {
        case .wait, .end:
            guard reader.sum() == sum || reader.isOver else { return false }
            checked = events
            if kind == .wait { _ = EventText.passOverWait(&reader) }
        case .foundMail, .refused: _ = reader.unsigned()
        case .tookMail:
            for _ in 0..<min(reader.unsigned(), reader.remaining) { for _ in 0..<2 { _ = reader.unsigned() } }
        case .decided: _ = reader.byte()
        case .read, .readAt, .write, .send, .sendPieces, .writeAt:
            for _ in kind.arguments { _ = reader.number() }
            let count = reader.number()
            guard count > 0 else { break }
            let isInput = kind == .read || kind == .readAt
            if !isInput || !contents.keepsPayloads { _ = reader.fixed() }
            if isInput ? contents.keepsPayloads : contents.keepsOutput { reader.skip(count) }
        case .makeThread:
            var (name, result) = (ByteDecoder(reader.block()), ByteDecoder(reader.block()))
            if let number = UInt32(exactly: result.number()), !reader.isOver { threads.append((number, name.text())) }
        default: for _ in 0..<2 { reader.skip(Int(clamping: reader.unsigned())) }
        }
        return true
    }
}

extension RecordContents {
    /// Returns a summary of each tape. O(bytes).
    func summaries() -> [UInt32: TapeSummary] { tapes.mapValues { TapeSummary($0, self) } }

    /// Returns the end, or the damage that the summaries show.
    func end(_ summaries: [UInt32: TapeSummary]) -> RecordEnd {
        for (number, summary) in summaries.sorted(by: { $0.key < $1.key }) {
            guard let events = summary.damage else { continue }
            return .damaged("in events \(events.lowerBound) to \(events.upperBound) of \(Self.name(ofTape: number))")
        }
        return end
    }

    /// Compares all bytes of the record with their sums, and checks that the replay's last event exists.
    func verify(_ path: String, _ until: ReplayOptions.Position?) throws(RecordError) {
        let summaries = summaries()
        if case .damaged(let place) = end(summaries) { throw .damaged(path, place: place) }
        guard let until else { return }
        guard let thread = UInt32(exactly: until.thread), thread < RecordLayout.lookUps, let summary = summaries[thread]
        else {
            throw .noThread(
                until.thread, threads: summaries.keys.filter { $0 < RecordLayout.lookUps }.map(Int.init).sorted())
        }
        guard until.event < summary.events else { throw .noEvent(until, count: summary.events) }
    }
}
