extension Flight {
    /// Returns flights as a timeline in the JSON of Chrome's tracing, which Perfetto shows: a track for each loop, with
    /// its runs, calls and sleeps. O(events).
    ///
    /// Arrows lead from handlers to the calls that they have caused, also between loops of one process. Counters show
    /// the lateness of timers, the waiting blocks and jobs, and the bytes of connections. Times are the wall clock's,
    /// so that flights of several loops and processes fit together.
    public static func traceEvents(of flights: [Flight]) -> String {
        var text = TimelineText()
        var arrows = FlightArrows(flights)
        for (track, flight) in flights.enumerated() {
            text.addTrack(track, of: flight.process, named: flight.loop)
            let calls = flight.calls
            flight.add(calls, to: &text, on: track)
            flight.addCounters(of: calls, to: &text)
            for arrow in arrows.arrows(to: calls, of: track) {
                let begin = flights[arrow.from].wallNanoseconds(arrow.begin)
                let end = max(flight.wallNanoseconds(arrow.end), begin)
                text.addArrow("cause", of: flight.process, from: (arrow.from, begin), to: (track, end))
            }
        }
        return text.text
    }

    private func wallNanoseconds(_ time: RunLoop.Instant) -> Int64 { (wallTimeAtBegin + (time - begin)).nanoseconds }

    /// Adds calls and sleeps.
    private func add(_ calls: [Call], to text: inout TimelineText, on track: Int) {
        let end = entries.last?.time ?? begin
        for call in calls {
            let handler = call.handler
            var details: TimelineText.Details = [("mode", JSONText(call.mode))]
            if let handler { details += [("kind", JSONText("\(handler.kind)")), ("line", JSONText(handler.origin))] }
            if let task = call.task, task != 0 { details.append(("task", JSONText(task))) }
            if let thread = call.cause?.thread { details.append(("posted by", JSONText(thread))) }
            if let lateness = call.lateness {
                details.append(("late µs", JSONText(microsecondsIn: lateness.nanoseconds)))
            }
            if call.duration == nil { details.append(("state", JSONText("under way at the end"))) }
            text.addSlice(
                handler.map { $0.name ?? "\($0.kind)" } ?? "without a name", "call", on: track, of: process,
                at: wallNanoseconds(call.begin), lasting: (call.duration ?? end - call.begin).nanoseconds, details)
        }
        for entry in entries {
            guard case .slept(let duration, let reason) = entry.event else { continue }
            text.addSlice(
                "sleep", "sleep", on: track, of: process, at: wallNanoseconds(entry.time - duration),
                lasting: duration.nanoseconds, [("woken by", JSONText("\(reason)"))])
        }
    }

    private func addCounters(of calls: [Call], to text: inout TimelineText) {
        func add(_ name: String, _ time: RunLoop.Instant, _ values: TimelineText.Details) {
            text.addCounter("\(loop): \(name)", of: process, at: wallNanoseconds(time), values)
        }
        for call in calls {
            guard let lateness = call.lateness else { continue }
            add("lateness", call.begin, [("µs", JSONText(microsecondsIn: lateness.nanoseconds))])
        }
        var waiting: Set<Effect> = []
        var bytes: [Handler?: (received: Int, sent: Int)] = [:]
        var handler: Handler?
        func count(_ change: Bool, at time: RunLoop.Instant) {
            guard change else { return }
            let jobs = waiting.count { $0.way == .task }
            add("waiting", time, [("blocks", JSONText(waiting.count - jobs)), ("jobs", JSONText(jobs))])
        }
        for entry in entries {
            switch entry.event {
            case .caused(let handler, let number):
                guard let effect = Effect(handler, number), effect.way == .post || effect.way == .task else { continue }
                count(waiting.insert(effect).inserted, at: entry.time)
            case .callBegan(let called, _):
                handler = called
                guard let task = entry.task, let effect = Effect(called, task) else { continue }
                count(waiting.remove(effect) != nil, at: entry.time)
            case .callHas(let number, _):
                guard let effect = Effect(handler, number) else { continue }
                count(waiting.remove(effect) != nil, at: entry.time)
            case .moved(let connection, _, let received, let sent):
                bytes[connection, default: (0, 0)].received += received
                bytes[connection]!.sent += sent
                let sum = bytes[connection]!
                let name =
                    connection.map { "\($0.name ?? "connection") (\($0.origin))" } ?? "connections without a name"
                add(
                    "bytes of \(name)", entry.time,
                    [("received", JSONText(sum.received)), ("sent", JSONText(sum.sent))])
            default: continue
            }
        }
    }
}
