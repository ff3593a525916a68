extension Flight {
    /// Flights as a timeline in the JSON of Chrome's tracing, which Perfetto shows: a track for each loop, with its runs, calls
    /// and sleeps. O(events).
    ///
    /// Times are those of the wall clock, so that flights of several loops and processes go together.
    public static func traceEvents(of flights: [Flight]) -> String {
        var lines: [String] = []
        for (track, flight) in flights.enumerated() {
            lines.append(
                #"{"ph":"M","name":"thread_name","pid":\#(flight.process),"tid":\#(track),"args":{"name":\#(quoted(flight.loop))}}"#
            )
            lines += flight.traceEvents(track)
        }
        return "{\"traceEvents\":[\n" + lines.joined(separator: ",\n") + "\n]}\n"
    }

    private func traceEvents(_ track: Int) -> [String] {
        func line(_ name: String, _ kind: String, _ begin: RunLoop.Instant, _ duration: Duration, _ details: String)
            -> String
        {
            let wall = wallTimeAtBegin + (begin - self.begin)
            return #"{"ph":"X","name":\#(quoted(name)),"cat":"\#(kind)","pid":\#(process),"tid":\#(track),"#
                + #""ts":\#(microseconds(wall.nanoseconds)),"dur":\#(microseconds(duration)),"args":{\#(details)}}"#
        }
        let end = entries.last?.time ?? begin
        var lines = calls.map { call in
            let handler = call.handler
            let name = handler.map { $0.name ?? "\($0.kind)" } ?? "without a name"
            var details = #""mode":\#(quoted(call.mode))"#
            if let handler { details += #","kind":\#(quoted("\(handler.kind)")),"line":\#(quoted(handler.origin))"# }
            if let lateness = call.lateness { details += #","late µs":\#(microseconds(lateness))"# }
            if call.duration == nil { details += #","state":"under way at the end""# }
            return line(name, "call", call.begin, call.duration ?? end - call.begin, details)
        }
        for entry in entries {
            guard case .slept(let duration) = entry.event else { continue }
            lines.append(line("sleep", "sleep", entry.time - duration, duration, ""))
        }
        return lines
    }

    private func microseconds(_ duration: Duration) -> String {
        let (seconds, attoseconds) = duration.components
        return microseconds(seconds &* 1_000_000_000 &+ attoseconds / 1_000_000_000)
    }

    private func microseconds(_ nanoseconds: Int64) -> String {
        let (whole, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1000)
        return "\(whole)." + String(repeating: "0", count: 3 - "\(abs(rest))".count) + "\(abs(rest))"
    }
}
