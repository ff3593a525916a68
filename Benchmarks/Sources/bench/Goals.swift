/// A goal of ours, as a ratio within one run.
struct Goal: Sendable {
    enum Limit: Sendable {
        case atMost(Double)
        case atLeast(Double)
    }

    typealias Measure = @Sendable (Results, [Peer]) -> Double?

    let text: String
    let limit: Limit
    let measure: Measure

    init(_ text: String, _ limit: Limit, _ measure: @escaping Measure) {
        self.text = text
        self.limit = limit
        self.measure = measure
    }

    private static func ratio(
        _ metric: String, of own: String = Peer.ours, to other: String, in workload: String
    ) -> Measure {
        { results, _ in results.ratio(metric, of: own, to: other, in: workload) }
    }

    /// Returns the ratio to the best loop of C.
    private static func ratioToBestC(_ metric: String, in workload: String) -> Measure {
        { results, peers in
            results.best(metric, in: workload, among: peers.filter(\.isC))
                .flatMap { results.ratio(metric, of: Peer.ours, to: $0, in: workload) }
        }
    }

    /// Returns the ratio to the best of the others; none without the default executor, which a quick run leaves out,
    /// and beside which everything else looks good.
    private static func ratioToBestExecutor(_ metric: String, in workload: String) -> Measure {
        { results, peers in
            guard results.median(metric, of: "dispatch", in: workload) != nil else { return nil }
            return results.best(metric, in: workload, among: peers.filter { !$0.isOurs })
                .flatMap { results.ratio(metric, of: Peer.ours, to: $0, in: workload) }
        }
    }

    private static func value(_ metric: String, of peer: String = Peer.ours, in workload: String) -> Measure {
        { results, _ in results.median(metric, of: peer, in: workload) }
    }

    private static func churn(_ own: String = Peer.ours, to other: String, _ workload: String) -> Measure {
        { results, _ in results.ratio(["add", "cancel"], of: own, to: other, in: workload) }
    }

    private static let sizes = ["1k", "10k", "100k", "1M"]

    /// Delayed calls, the light timers.
    private static let light: [Goal] =
        sizes.map {
            Goal(
                "delayed call: add + cancel of \($0), to libevent's", .atMost(1),
                churn(Peer.call, to: "libevent", "churn \($0)"))
        }
        + sizes.map {
            Goal(
                "delayed call: add + cancel of \($0), to libev's", .atMost(1.5),
                churn(Peer.call, to: "libev", "churn \($0)"))
        }
        + [
            Goal(
                "delayed call: re-arm, to libev's", .atMost(2), ratio("rearm", of: Peer.call, to: "libev", in: "rearm")),
            Goal(
                "delayed call: bulk fire of 1M, to libev's", .atMost(1.2),
                ratio("cpu_per_fire", of: Peer.call, to: "libev", in: "fire 1M")),
            Goal(
                "delayed call: bulk fire of 100k, to libev's", .atMost(1.2),
                ratio("cpu_per_fire", of: Peer.call, to: "libev", in: "fire 100k")),
            Goal(
                "delayed call: memory at 100k, bytes", .atMost(112), value("memory", of: Peer.call, in: "churn 100k")),
            Goal("delayed call: memory at 1M, bytes", .atMost(112), value("memory", of: Peer.call, in: "churn 1M")),
        ]

    /// Guests and hosts.
    private static let guests: [Goal] = Peer.all.flatMap { peer in
        ["idle", "fire", "echo"].compactMap { work in
            peer.host.map { host in
                Goal(
                    "\(peer.name): \(work), to \(host)", .atMost(1.3),
                    ratio("each", of: peer.name, to: host, in: "guest \(work)"))
            }
        }
    }

    /// Timeouts, which lie in an object of their user.
    private static let embedded: [Goal] = ["1k", "100k", "1M"].flatMap { size in
        [("libev", 1.5), ("libevent", 1)].map { other, limit in
            Goal(
                "timeout: add + cancel of \(size), to \(other)'s in memory of the caller", .atMost(limit),
                churn(to: other, "embed \(size)"))
        }
    }

    private static func churnFaster(_ other: String, _ workload: String) -> Measure {
        { results, _ in results.ratio(["add", "cancel"], of: other, to: Peer.ours, in: workload) }
    }

    private static func post(_ workload: String) -> Measure {
        { results, peers in
            // 150 ns or half of the best: in units of the limit that is easier to keep.
            guard let own = results.median("per_task", of: Peer.ours, in: workload) else { return nil }
            let toBest = ratioToBestC("per_task", in: workload)(results, peers) ?? .infinity
            return min(own / 150, toBest / 0.5)
        }
    }

    static let all: [Goal] =
        sizes.map { Goal("add + cancel of \($0), to libevent's", .atMost(1.4), churn(to: "libevent", "churn \($0)")) }
        + [
            Goal("add + cancel of 1k, Foundation's to ours", .atLeast(15), churnFaster("foundation", "churn 1k")),
            Goal(
                "add + cancel of 100k, Foundation's to ours", .atLeast(150), churnFaster("foundation", "churn 100k")),
            Goal("re-arm, to libev's", .atMost(3), ratio("rearm", to: "libev", in: "rearm")),
            Goal("bulk fire of 1M, to libev's", .atMost(1.5), ratio("cpu_per_fire", to: "libev", in: "fire 1M")),
            Goal("bulk fire of 100k, to libev's", .atMost(1.5), ratio("cpu_per_fire", to: "libev", in: "fire 100k")),
            Goal(
                "fire 5 µs apart, to the floor's with a timerfd", .atMost(1.3),
                ratio("cpu_per_fire", to: "floor, timerfd", in: "fire 10k")),
            Goal("one-shots: earliest fire, µs", .atLeast(0), value("earliest", in: "fire 10k")),
            Goal("periodic: earliest fire, µs", .atLeast(0), value("earliest", in: "periodic")),
            Goal("periodic: fires, % of the grid", .atLeast(99.9), value("fires", in: "periodic")),
            Goal("periodic: late p50, to the floor's", .atMost(1.5), ratio("late_p50", to: "floor", in: "periodic")),
            Goal(
                "periodic: processor time, to libevent's with precise timers", .atMost(1),
                ratio("cpu", to: "libevent, precise", in: "periodic")),
            Goal("periodic with 1 ms of tolerance: processor time, to libev's", .atMost(1.2)) { results, _ in
                results.ratio("cpu", of: "ours, tolerance 1 ms", to: "libev", in: "periodic")
            },
            Goal("periodic with 1 ms of tolerance: wake-ups to those without", .atMost(0.5)) { results, _ in
                guard let some = results.median("waits", of: "ours, tolerance 1 ms", in: "periodic") else { return nil }
                return results.median("waits", of: Peer.ours, in: "periodic").map { some / $0 }
            },
            Goal("post, 1 producer, to 150 ns or half of the best C loop's", .atMost(1), post("post 1")),
            Goal("post, 2 producers, to 150 ns or half of the best C loop's", .atMost(1), post("post 2")),
            Goal(
                "round trip of a post, to the best C loop's", .atMost(1.05),
                ratioToBestC("round_trip", in: "ping cross")
            ),
            Goal(
                "round trip of a descriptor, to libevent's", .atMost(1.05),
                ratio("round_trip", to: "libevent", in: "fdping cross")),
            Goal("chain of 100, to libevent's", .atMost(1.1), ratio("total", to: "libevent", in: "chain 100")),
            Goal("chain of 1,000, to libevent's", .atMost(1.1), ratio("total", to: "libevent", in: "chain 1000")),
            Goal(
                "pass with nothing to do, to libevent's", .atMost(1.15), ratio("per_pass", to: "libevent", in: "idle")),
            Goal("mode switch, to a pass with nothing to do", .atMost(2)) { results, _ in
                guard let pass = results.median("per_pass", of: Peer.ours, in: "idle") else { return nil }
                return results.median("per_switch", of: Peer.ours, in: "switch 1").map { $0 / pass }
            },
            Goal("mode switch with 100k timers, to one with 1", .atMost(1.2)) { results, _ in
                guard let one = results.median("per_switch", of: Peer.ours, in: "switch 1") else { return nil }
                return results.median("per_switch", of: Peer.ours, in: "switch 100k").map { $0 / one }
            },
            Goal("memory of a pending timer at 100k, bytes", .atMost(168), value("memory", in: "churn 100k")),
            Goal("memory of a pending timer at 1M, bytes", .atMost(168), value("memory", in: "churn 1M")),
            Goal(
                "memory left after cancelling 1M, to the floor's", .atMost(1.1),
                ratio("memory_left", to: "floor", in: "churn 1M")),
            Goal("virtual time: million fires a second", .atLeast(5)) { results, _ in
                results.median("per_fire", of: Peer.ours, in: "virtual").map { 1000 / $0 }
            },
            Goal("virtual time: NIO's embedded loop to ours", .atLeast(20)) { results, _ in
                results.ratio("per_fire", of: "nio", to: Peer.ours, in: "virtual")
            },
            Goal("yield of a task, to the fastest other's", .atMost(1), ratioToBestExecutor("each", in: "yield")),
            Goal(
                "preferring task to an actor of the loop and back, to the fastest other's", .atMost(1),
                ratioToBestExecutor("each", in: "preferring")),
            Goal("actor to actor of one loop, to NIO's", .atMost(2), ratio("each", to: "nio", in: "actors")),
            Goal(
                "actor to actor of another thread and back, to NIO's", .atMost(1),
                ratio("each", to: "nio", in: "hop cross")),
        ] + light + embedded + guests

    /// Returns all goals that were measured; `nil` if there are none.
    static func table(_ runs: [Results], _ peers: [Peer]) -> String? {
        let rows = all.compactMap { $0.row(runs, peers) }
        guard !rows.isEmpty else { return nil }
        let single = runs.count == 1
        let columns = single ? ["measured"] : runs.indices.map { "run \($0 + 1)" } + ["median"]
        let met = rows.count { $0.isMet }
        return """
            ### Goals

            Of \(rows.count) goals \(met) are met\(single ? "" : " in the median of the runs").

            | goal of ours | \(columns.joined(separator: " | ")) | limit | |
            |---|\(columns.map { _ in "---:|" }.joined())---:|---|
            \(rows.map(\.text).joined(separator: "\n"))
            """
    }

    /// Returns the row of a goal. A goal that one run has not measured is missed, because otherwise a failure would
    /// remove it from the count.
    private func row(_ runs: [Results], _ peers: [Peer]) -> (text: String, isMet: Bool)? {
        let measured = runs.map { measure($0, peers) }
        let values = measured.compactMap(\.self)
        guard !values.isEmpty else { return nil }
        let median = values.median, isComplete = values.count == runs.count
        let figures = (runs.count == 1 ? measured : measured + [median]).map { $0?.short ?? "–" }
            .joined(separator: " | ")
        switch limit {
        case .atMost(let limit): return row(figures, "≤ \(limit.short)", isMet: isComplete && median <= limit)
        case .atLeast(let limit): return row(figures, "≥ \(limit.short)", isMet: isComplete && median >= limit)
        }
    }

    private func row(_ figures: String, _ limit: String, isMet: Bool) -> (text: String, isMet: Bool) {
        ("| \(text) | \(figures) | \(limit) | \(isMet ? "met" : "**missed**") |", isMet)
    }
}
