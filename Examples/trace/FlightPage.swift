import RunLoopKit

/// Flights as one self-contained page. Each has the picture over time, the calls under way at the end, the latest
/// timers with the calls in their way, the handlers by their time, the tasks by their polls, the reasons to wake, and
/// the connections by their bytes.
struct FlightPage {
    let flights: [Flight]

    var html: String {
        var body = ""
        for flight in flights {
            body += "<h1>\(flight.loop.markup), process \(flight.process)</h1>\n<p>\(summary(of: flight))</p>\n"
            body += FlightChart(flight).svg + unfinished(flight) + delays(flight) + usage(flight)
            body += tasks(flight) + wakeUps(flight) + traffic(flight)
        }
        return """
            <!DOCTYPE html>
            <html xmlns="http://www.w3.org/1999/xhtml" lang="en">
            <head><meta charset="utf-8"/><title>Flights</title>
            <style>
            body { font-family: sans-serif; margin: 2em; color: #222 }
            table { border-collapse: collapse } td, th { padding: 0.2em 0.8em; text-align: left }
            td.number { text-align: right } tr:nth-child(even) { background: #f4f4f4 }
            </style></head>
            <body>
            \(body)</body>
            </html>

            """
    }

    private func summary(of flight: Flight) -> String {
        guard let first = flight.entries.first, let last = flight.entries.last else { return "There are no events." }
        var text = "\(flight.entries.count) events in \((last.time - first.time).inWords)"
        if flight.lost > 0 { text += ", \(flight.lost) before them are lost" }
        text += ". The loop slept for \(flight.sleep.inWords)"
        if flight.idleWakeUps > 0 { text += ", and woke up \(flight.idleWakeUps) times without a call" }
        return text + "."
    }

    private func unfinished(_ flight: Flight) -> String {
        let calls = flight.unfinished
        guard !calls.isEmpty, let last = flight.entries.last else { return "" }
        return "<h2>Under way at the end, the innermost last</h2>\n"
            + table(
                ["handler", "mode", "for"], calls.map { [name($0.handler), $0.mode, (last.time - $0.begin).inWords] })
    }

    private func delays(_ flight: Flight) -> String {
        let delays = flight.delays(of: .milliseconds(1))
        guard !delays.isEmpty else { return "" }
        return "<h2>The latest timers</h2>\n"
            + table(
                ["late", "at", "timer", "in its way"],
                delays.map { delay in
                    let causes = delay.causes.prefix(3).map { cause in
                        "\(name(cause.handler)), \(cause.duration.map { "took \($0.inWords)" } ?? "under way")"
                    }
                    return [
                        delay.call.lateness!.inWords, "\(delay.call.begin)", name(delay.call.handler),
                        causes.joined(separator: "; "),
                    ]
                })
    }

    private func usage(_ flight: Flight) -> String {
        let usage = flight.usage
        guard !usage.isEmpty else { return "" }
        return "<h2>Handlers, by the time of their calls</h2>\n"
            + table(
                ["time", "calls", "longest", "handler"],
                usage.prefix(100).map { [$0.time.inWords, "\($0.calls)", $0.longest.inWords, name($0.handler)] })
    }

    private func tasks(_ flight: Flight) -> String {
        let tasks = flight.tasks
        guard !tasks.isEmpty else { return "" }
        return "<h2>Tasks, by their polls</h2>\n"
            + table(
                ["polls", "wakes", "time", "longest poll", "longest wait for its turn", "task"],
                tasks.prefix(100).map {
                    [
                        "\($0.polls)", "\($0.wakes)", $0.time.inWords, $0.longest.inWords, $0.longestWait.inWords,
                        $0.name,
                    ]
                })
    }

    private func wakeUps(_ flight: Flight) -> String {
        let wakeUps = flight.wakeUps
        guard !wakeUps.isEmpty else { return "" }
        return "<h2>Reasons to wake up</h2>\n"
            + table(
                ["times", "without a call", "woken by"],
                wakeUps.prefix(100).map { ["\($0.count)", "\($0.idle)", "\($0.reason)"] })
    }

    private func traffic(_ flight: Flight) -> String {
        let traffic = flight.traffic
        guard !traffic.isEmpty else { return "" }
        return "<h2>Connections, by their bytes</h2>\n"
            + table(
                ["received", "sent", "descriptor", "connection"],
                traffic.prefix(100).map {
                    ["\($0.received)", "\($0.sent)", "\($0.descriptor)", name($0.connection)]
                })
    }

    private func name(_ handler: Flight.Handler?) -> String { handler.map { "\($0)" } ?? "handlers without a name" }

    private func table(_ heads: [String], _ rows: [[String]]) -> String {
        var text = "<table><tr>" + heads.map { "<th>\($0)</th>" }.joined() + "</tr>\n"
        for row in rows {
            text += "<tr>" + row.map { "<td>\($0.markup)</td>" }.joined() + "</tr>\n"
        }
        return text + "</table>\n"
    }
}
