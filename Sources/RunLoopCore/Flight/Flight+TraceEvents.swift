extension Flight {
    /// Returns flights as a timeline in the JSON of Chrome's tracing, which Perfetto shows: a track for each loop, with
    /// its runs, calls and sleeps. O(events).
    ///
    /// Arrows lead from handlers to the calls that they have caused, also between loops of one process. Counters show
    /// the lateness of timers, the waiting blocks and jobs, and the bytes of connections. Times are the wall clock's,
    /// so that flights of several loops and processes fit together.
    public static func traceEvents(of flights: [Flight]) -> String {
        var lines: [String] = []
        var (arrows, arrowCount) = (FlightArrows(flights), 0)
        for (track, flight) in flights.enumerated() {
            lines.append(
                #"{"ph":"M","name":"thread_name","pid":\#(flight.process),"tid":\#(track),"args":{"name":\#(quoted(flight.loop))}}"#
            )
            let calls = flight.calls
            lines += flight.traceEvents(of: calls, track)
            lines += flight.counters(of: calls)
            for arrow in arrows.arrows(to: calls, of: track) {
                arrowCount += 1
                let from = flights[arrow.from]
                let begin = from.wallNanoseconds(arrow.begin)
                let end = max(flight.wallNanoseconds(arrow.end), begin)
                let both = #""id":\#(arrowCount),"name":"cause","cat":"cause","pid":\#(flight.process)"#
                lines.append(#"{"ph":"s",\#(both),"tid":\#(arrow.from),"ts":\#(begin.inMicroseconds)}"#)
                lines.append(#"{"ph":"f","bp":"e",\#(both),"tid":\#(track),"ts":\#(end.inMicroseconds)}"#)
            }
        }
        return "{\"traceEvents\":[\n" + lines.joined(separator: ",\n") + "\n]}\n"
    }

    private func wallNanoseconds(_ time: RunLoop.Instant) -> Int64 { (wallTimeAtBegin + (time - begin)).nanoseconds }

    private func microseconds(_ duration: Duration) -> String { duration.nanoseconds.inMicroseconds }

    private func traceEvents(of calls: [Call], _ track: Int) -> [String] {
        func line(_ name: String, _ kind: String, _ begin: RunLoop.Instant, _ duration: Duration, _ details: String)
            -> String
        {
            let (time, length) = (wallNanoseconds(begin).inMicroseconds, microseconds(duration))
            return #"{"ph":"X","name":\#(quoted(name)),"cat":"\#(kind)","pid":\#(process),"tid":\#(track),"#
                + #""ts":\#(time),"dur":\#(length),"args":{\#(details)}}"#
        }
        let end = entries.last?.time ?? begin
        var lines = calls.map { call in
            let handler = call.handler
            let name = handler.map { $0.name ?? "\($0.kind)" } ?? "without a name"
            var details = #""mode":\#(quoted(call.mode))"#
            if let handler { details += #","kind":\#(quoted("\(handler.kind)")),"line":\#(quoted(handler.origin))"# }
            if let task = call.task, task != 0 { details += #","task":\#(task)"# }
            if let thread = call.cause?.thread { details += #","posted by":\#(quoted(thread))"# }
            if let lateness = call.lateness { details += #","late µs":\#(microseconds(lateness))"# }
            if call.duration == nil { details += #","state":"under way at the end""# }
            return line(name, "call", call.begin, call.duration ?? end - call.begin, details)
        }
        for entry in entries {
            guard case .slept(let duration, let reason) = entry.event else { continue }
            lines.append(
                line("sleep", "sleep", entry.time - duration, duration, #""woken by":\#(quoted("\(reason)"))"#))
        }
        return lines
    }

    private func counters(of calls: [Call]) -> [String] {
        func line(_ name: String, _ time: RunLoop.Instant, _ values: String) -> String {
            let (name, time) = (quoted("\(loop): \(name)"), wallNanoseconds(time).inMicroseconds)
            return #"{"ph":"C","name":\#(name),"pid":\#(process),"ts":\#(time),"args":{\#(values)}}"#
        }
        var lines: [String] = []
        for call in calls {
            guard let lateness = call.lateness else { continue }
            lines.append(line("lateness", call.begin, #""µs":\#(microseconds(lateness))"#))
        }
        var waiting: Set<Effect> = []
        var bytes: [Handler?: (received: Int, sent: Int)] = [:]
        var handler: Handler?
        func count(_ change: Bool, at time: RunLoop.Instant) {
            guard change else { return }
            let jobs = waiting.count { $0.way == .task }
            lines.append(line("waiting", time, #""blocks":\#(waiting.count - jobs),"jobs":\#(jobs)"#))
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
                lines.append(line("bytes of \(name)", entry.time, #""received":\#(sum.received),"sent":\#(sum.sent)"#))
            default: continue
            }
        }
        return lines
    }
}

extension Int64 {
    /// This number of nanoseconds in microseconds with three decimals, as in Chrome's tracing.
    @_spi(Ports) public var inMicroseconds: String {
        let (whole, rest) = quotientAndRemainder(dividingBy: 1000)
        return "\(whole)." + padded("\(rest.magnitude)", to: 3)
    }
}
