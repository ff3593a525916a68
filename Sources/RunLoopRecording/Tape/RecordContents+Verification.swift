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
