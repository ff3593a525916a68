import Foundation

/// A table of a report: an overview, and one for each family of workloads.
struct Table {
    struct Column {
        var title: String
        var workload: String
        var metric: String
        /// `true` if smaller is better, so that ratios are meaningful.
        var hasRatios = true
    }

    let title: String
    /// `true` if forms of a peer have rows of their own.
    var hasForms = true
    /// A difference between the contracts of the peers, which belongs to the figures.
    var note: String?
    let columns: [Column]

    private static func sizes(_ kind: String, _ metric: String, _ sizes: [String]) -> [Column] {
        sizes.map { Column(title: $0, workload: "\(kind) \($0)", metric: metric) }
    }

    static let all = [
        Table(
            title: "Overview", hasForms: false,
            columns: [
                Column(title: "add a timer, of 100k, ns", workload: "churn 100k", metric: "add", hasRatios: false),
                Column(title: "cancel, ns", workload: "churn 100k", metric: "cancel", hasRatios: false),
                Column(title: "bytes a timer", workload: "churn 100k", metric: "memory", hasRatios: false),
                Column(title: "re-arm, ns", workload: "rearm", metric: "rearm", hasRatios: false),
                Column(title: "fire in bulk, ns", workload: "fire 100k", metric: "cpu_per_fire", hasRatios: false),
                Column(title: "1,000 repeating, processor %", workload: "periodic", metric: "cpu", hasRatios: false),
                Column(title: "earliest, µs", workload: "periodic", metric: "earliest", hasRatios: false),
                Column(title: "post, ns", workload: "post 1", metric: "per_task", hasRatios: false),
                Column(title: "chain of 1,000, µs", workload: "chain 1000", metric: "total", hasRatios: false),
                Column(title: "idle pass, ns", workload: "idle", metric: "per_pass", hasRatios: false),
            ]),
        Table(title: "Adding a timer, ns", columns: sizes("churn", "add", ["1k", "10k", "100k", "1M"])),
        Table(
            title: "Cancelling a timer, in random order, ns",
            columns: sizes("churn", "cancel", ["1k", "10k", "100k", "1M"])),
        Table(
            title: "Timers in memory of the caller, ns",
            columns: ["1k", "100k", "1M"].flatMap { size in
                ["add", "cancel"].map { Column(title: "\($0) \(size)", workload: "embed \(size)", metric: $0) }
            }),
        Table(
            title: "Memory of a pending timer, and what is left of it after all were cancelled, bytes",
            columns: ["10k", "100k", "1M"].flatMap { size in
                [
                    Column(title: size, workload: "churn \(size)", metric: "memory"),
                    Column(
                        title: "left of \(size)", workload: "churn \(size)", metric: "memory_left", hasRatios: false),
                ]
            }),
        Table(
            title: "Re-arming one of 100,000 timers, in random order, ns",
            note: "Ours counts the new date from the time of the pass, as the loops that keep the time do.",
            columns: [Column(title: "re-arm", workload: "rearm", metric: "rearm")]),
        Table(
            title: "Firing one-shots: processor time of a fire, ns",
            note: """
                A delayed call of ours is dated by the time of the pass, as in the loops that keep the time. Measured from the
                call that arms it, as here, it is early by what the pass has taken until then.
                """,
            columns: [
                Column(title: "10k, 5 µs apart", workload: "fire 10k", metric: "cpu_per_fire"),
                Column(title: "100k, bulk", workload: "fire 100k", metric: "cpu_per_fire"),
                Column(title: "1M, bulk", workload: "fire 1M", metric: "cpu_per_fire"),
                Column(title: "10k: late p50, µs", workload: "fire 10k", metric: "late_p50", hasRatios: false),
                Column(title: "p99, µs", workload: "fire 10k", metric: "late_p99", hasRatios: false),
                Column(title: "earliest, µs", workload: "fire 10k", metric: "earliest", hasRatios: false),
            ]),
        Table(
            title: "1,000 repeating timers of 10 to 50 ms",
            columns: [
                Column(title: "processor, %", workload: "periodic", metric: "cpu"),
                Column(title: "fires, % of the grid", workload: "periodic", metric: "fires", hasRatios: false),
                Column(title: "late p50, µs", workload: "periodic", metric: "late_p50", hasRatios: false),
                Column(title: "p99, µs", workload: "periodic", metric: "late_p99", hasRatios: false),
                Column(title: "earliest, µs", workload: "periodic", metric: "earliest", hasRatios: false),
                Column(title: "sleeps a second", workload: "periodic", metric: "switches", hasRatios: false),
            ]),
        Table(
            title: "Posting from another thread: a round trip, ns",
            columns: [
                Column(title: "other processor", workload: "ping cross", metric: "round_trip"),
                Column(title: "p99", workload: "ping cross", metric: "round_trip_p99", hasRatios: false),
                Column(title: "same processor", workload: "ping same", metric: "round_trip"),
            ]),
        Table(
            title: "Posting as fast as it goes, ns a task",
            columns: [
                Column(title: "1 producer", workload: "post 1", metric: "per_task"),
                Column(title: "processor time", workload: "post 1", metric: "per_task_cpu"),
                Column(title: "2 producers", workload: "post 2", metric: "per_task"),
            ]),
        Table(
            title: "Descriptors: a round trip, ns; libevent's chain of 1,000 writes, µs",
            columns: [
                Column(title: "other processor", workload: "fdping cross", metric: "round_trip"),
                Column(title: "same processor", workload: "fdping same", metric: "round_trip"),
                Column(title: "chain of 100", workload: "chain 100", metric: "total"),
                Column(title: "chain of 1,000", workload: "chain 1000", metric: "total"),
            ]),
        Table(
            title: "A pass that finds nothing to do; in two modes by turns, with timers in the other one, ns",
            columns: [
                Column(title: "pass", workload: "idle", metric: "per_pass"),
                Column(title: "two modes, 1 timer", workload: "switch 1", metric: "per_switch"),
                Column(title: "100k timers", workload: "switch 100k", metric: "per_switch"),
            ]),
        Table(
            title: "Timers of the common modes; 10,000 descriptors of which half are out of mode, ns",
            columns: [
                Column(title: "add", workload: "common", metric: "add"),
                Column(title: "remove", workload: "common", metric: "cancel"),
                Column(title: "pass", workload: "parked", metric: "pass"),
                Column(title: "pass, all others ready", workload: "parked", metric: "pass_others_ready"),
                Column(title: "two modes by turns", workload: "parked", metric: "switch"),
            ]),
        Table(
            title: "A fire on virtual time, ns",
            columns: [Column(title: "1,000 repeating timers", workload: "virtual", metric: "per_fire")]),
        Table(
            title: "Swift concurrency on a loop, ns",
            columns: [
                Column(title: "yield", workload: "yield", metric: "each"),
                Column(title: "preferring task ↔ actor", workload: "preferring", metric: "each"),
                Column(title: "actor to actor", workload: "actors", metric: "each"),
                Column(title: "in a preferring task", workload: "actors, preferring", metric: "each"),
                Column(title: "other processor and back", workload: "hop cross", metric: "each"),
                Column(title: "other thread and back", workload: "hop same", metric: "each"),
            ]),
        Table(
            title: "Sleeping tasks that wake up within a second",
            columns: ["100k", "1M"].flatMap { size in
                [
                    Column(title: "bytes, of \(size)", workload: "sleeps \(size)", metric: "memory"),
                    Column(title: "start, ns", workload: "sleeps \(size)", metric: "cpu_start"),
                    Column(title: "end, ns", workload: "sleeps \(size)", metric: "cpu_end"),
                    Column(title: "sleeps of threads", workload: "sleeps \(size)", metric: "switches"),
                ]
            }),
        Table(
            title: "Guests and hosts: processor time of an event, ns, and its ratio to that of the host alone",
            columns: [
                Column(title: "the host's own, the guest idle", workload: "guest idle", metric: "each"),
                Column(title: "timer of 1 ms", workload: "guest fire", metric: "each"),
                Column(title: "descriptor, a byte echoed", workload: "guest echo", metric: "each"),
                Column(title: "descriptor, nothing done", workload: "guest descriptor", metric: "each"),
            ]),
    ]

    /// Returns the table in Markdown; `nil` if nothing of it was measured.
    func markdown(_ results: Results, _ peers: [Peer]) -> String? {
        let columns = self.columns.filter { column in
            peers.contains { results.median(column.metric, of: $0.name, in: column.workload) != nil }
        }
        let rows = peers.filter { hasForms || $0.form == Peer.usualForm }.filter { peer in
            columns.contains { results.median($0.metric, of: peer.name, in: $0.workload) != nil }
        }
        guard !rows.isEmpty else { return nil }
        var lines = ["### \(title)", ""]
        lines.append("| | " + columns.map(\.title).joined(separator: " | ") + " |")
        lines.append("|---|" + String(repeating: "---:|", count: columns.count))
        for peer in rows {
            let cells = columns.map { cell(peer, $0, results, peers) }
            let name = peer.isOurs ? "**\(peer.name)**" : peer.name
            lines.append("| \(name) | " + cells.joined(separator: " | ") + " |")
        }
        if let note { lines += ["", note.replacingOccurrences(of: "\n", with: " ")] }
        return lines.joined(separator: "\n")
    }

    private func cell(_ peer: Peer, _ column: Column, _ results: Results, _ peers: [Peer]) -> String {
        guard let value = results.median(column.metric, of: peer.name, in: column.workload) else {
            return results.failed(peer.name, in: column.workload) ? "did not finish" : "–"
        }
        guard column.hasRatios else { return value.short }
        let ratios = references(of: peer, column, results, peers).compactMap { reference in
            results.ratio(column.metric, of: peer.name, to: reference, in: column.workload)?.short
        }
        return ratios.isEmpty ? value.short : "\(value.short) (\(ratios.joined(separator: ", ")))"
    }

    /// Returns the peers with which a peer is compared.
    private func references(of peer: Peer, _ column: Column, _ results: Results, _ peers: [Peer]) -> [String] {
        if peer.program == "Guests" { return peer.host.map { [$0] } ?? [] }
        let others = peers.filter { !$0.isYardstick && !$0.isOurs }
        guard let best = results.best(column.metric, in: column.workload, among: others) else { return [] }
        return [best, Peer.floor]
    }
}

extension Double {
    /// The value with as many digits as a measurement deserves.
    var short: String {
        let digits = abs(self) >= 99.95 ? 0 : abs(self) >= 9.995 ? 1 : abs(self) >= 0.1 ? 2 : 3
        let text = String(format: "%.\(digits)f", self)
        guard digits == 0, abs(self) >= 1000 else { return text }
        var grouped = "", count = 0
        for character in text.reversed() {
            if count > 0 && count % 3 == 0 && character.isNumber { grouped.append(",") }
            grouped.append(character)
            count += 1
        }
        return String(grouped.reversed())
    }
}
