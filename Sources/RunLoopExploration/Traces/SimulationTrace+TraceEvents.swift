@_spi(Ports) internal import RunLoopCore
@_spi(Ports) internal import RunLoopSimulation

extension SimulationTrace {
    /// The run as a timeline in Chrome's JSON trace format, for Perfetto: a track for each host, thread and task, with
    /// its life and its events, arrows for messages, and counters of their bytes. O(n) in the number of events.
    ///
    /// Times are virtual. An event has a length of one nanosecond, so that it can be selected.
    public var traceEvents: String {
        var events = RunEvents()
        for entry in trace.entries { events.add(entry) }
        events.end(at: trace.entries.last?.date ?? RunLoop.Instant(nanoseconds: 0))
        return events.text.text
    }
}

/// The events of a run as a timeline, whose tracks belong to one process.
private struct RunEvents {
    private(set) var text = TimelineText()
    private static let process = 1
    /// The number of each track, by its name.
    private var tracks: [String: Int] = [:]
    /// The time since which each lane has had a thread.
    private var begins: [String: RunLoop.Instant] = [:]
    private var bytes: [String: Int] = [:]

    mutating func add(_ entry: Trace.Entry) {
        switch entry {
        case .choice(let choice):
            guard choice.isDeparture else { return }
            slice(choice.words, "departure", in: "departures", choice.date)
        case .event(let event):
            switch event.kind {
            case .began: begins[event.lane] = event.date
            case .ended: endLife(of: event.lane, at: event.date)
            case .renamed(let name):
                // The track was made for the same lane.
                tracks[name] = track(event.lane)
                begins[name] = begins.removeValue(forKey: event.lane)
                nameTrack(tracks[name]!, name)
            case .note: slice(event.words, "note", in: lane(of: event), event.date)
            case .call: slice(event.words, "call", in: lane(of: event), event.date, line: event.place)
            case .ignored: slice(event.words, "ignored", in: lane(of: event), event.date)
            case .message(let message, let sender): add(message, event, from: sender)
            }
        }
    }

    /// Ends the lives of the lanes that have a thread at the end.
    mutating func end(at date: RunLoop.Instant) {
        for lane in begins.keys.sorted() { endLife(of: lane, at: date) }
    }

    private func lane(of event: TracedEvent) -> String { event.thread.map { "\(event.lane), \($0)" } ?? event.lane }

    private mutating func endLife(of lane: String, at date: RunLoop.Instant) {
        guard let begin = begins.removeValue(forKey: lane) else { return }
        // After the lane's last event.
        slice(lane, "life", in: lane, begin, nanoseconds: date.nanoseconds - begin.nanoseconds + 1)
    }

    private mutating func add(_ message: HostMessage, _ event: TracedEvent, from sender: String) {
        slice(event.words, "message", in: event.lane, event.date)
        slice(event.words, "message to \(event.lane)", in: sender, event.date)
        let (time, from, to) = (event.date.nanoseconds, track(sender), track(event.lane))
        text.addArrow("message", of: Self.process, from: (from, time), to: (to, time))
        guard case .bytes(let count) = message else { return }
        bytes[event.lane, default: 0] += count
        text.addCounter(
            "bytes received by \(event.lane)", of: Self.process, at: time, [("bytes", JSONText(bytes[event.lane]!))])
    }

    private mutating func slice(
        _ name: String, _ kind: String, in lane: String, _ date: RunLoop.Instant, nanoseconds: Int64 = 1,
        line: TracedEvent.Place? = nil
    ) {
        let track = track(lane)
        text.addSlice(
            name, kind, on: track, of: Self.process, at: date.nanoseconds, lasting: nanoseconds,
            line.map { [("line", JSONText("\($0)"))] } ?? [])
    }

    private mutating func track(_ lane: String) -> Int {
        if let track = tracks[lane] { return track }
        let track = tracks.count
        tracks[lane] = track
        nameTrack(track, lane)
        return track
    }

    private mutating func nameTrack(_ track: Int, _ name: String) {
        text.addTrack(track, of: Self.process, named: name)
    }
}
