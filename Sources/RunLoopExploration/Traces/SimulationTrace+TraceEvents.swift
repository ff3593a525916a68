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
        return "{\"traceEvents\":[\n" + events.lines.joined(separator: ",\n") + "\n]}\n"
    }
}

/// The lines of a timeline.
private struct RunEvents {
    private(set) var lines: [String] = []
    /// The number of each track, by its name.
    private var tracks: [String: Int] = [:]
    /// The time since which each lane has had a thread.
    private var begins: [String: RunLoop.Instant] = [:]
    private var bytes: [String: Int] = [:]
    private var messages = 0

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

    private func lane(of event: Trace.Event) -> String { event.thread.map { "\(event.lane), \($0)" } ?? event.lane }

    private mutating func endLife(of lane: String, at date: RunLoop.Instant) {
        guard let begin = begins.removeValue(forKey: lane) else { return }
        // After the lane's last event.
        slice(lane, "life", in: lane, begin, nanoseconds: date.nanoseconds - begin.nanoseconds + 1)
    }

    private mutating func add(_ message: HostMessage, _ event: Trace.Event, from sender: String) {
        slice(event.words, "message", in: event.lane, event.date)
        slice(event.words, "message to \(event.lane)", in: sender, event.date)
        messages += 1
        let time = event.date.nanoseconds.inMicroseconds
        let both = #""id":\#(messages),"name":"message","cat":"message","pid":1,"ts":\#(time)"#
        lines.append(#"{"ph":"s",\#(both),"tid":\#(track(sender))}"#)
        lines.append(#"{"ph":"f","bp":"e",\#(both),"tid":\#(track(event.lane))}"#)
        guard case .bytes(let count) = message else { return }
        bytes[event.lane, default: 0] += count
        let name = quoted("bytes received by \(event.lane)")
        lines.append(#"{"ph":"C","name":\#(name),"pid":1,"ts":\#(time),"args":{"bytes":\#(bytes[event.lane]!)}}"#)
    }

    private mutating func slice(
        _ name: String, _ kind: String, in lane: String, _ date: RunLoop.Instant, nanoseconds: Int64 = 1,
        line: Trace.Place? = nil
    ) {
        let details = line.map { #""line":\#(quoted("\($0)"))"# } ?? ""
        let (track, time, length) = (track(lane), date.nanoseconds.inMicroseconds, nanoseconds.inMicroseconds)
        lines.append(
            #"{"ph":"X","name":\#(quoted(name)),"cat":\#(quoted(kind)),"pid":1,"tid":\#(track),"#
                + #""ts":\#(time),"dur":\#(length),"args":{\#(details)}}"#)
    }

    private mutating func track(_ lane: String) -> Int {
        if let track = tracks[lane] { return track }
        let track = tracks.count
        tracks[lane] = track
        nameTrack(track, lane)
        return track
    }

    private mutating func nameTrack(_ track: Int, _ name: String) {
        lines.append(#"{"ph":"M","name":"thread_name","pid":1,"tid":\#(track),"args":{"name":\#(quoted(name))}}"#)
    }
}
