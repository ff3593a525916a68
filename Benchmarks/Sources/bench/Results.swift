/// The measurements: a value for each metric, peer, workload and repetition.
struct Results {
    struct Key: Hashable {
        var peer: String
        var workload: String
        var metric: String
    }

    private var values: [Key: [Int: Double]] = [:]
    /// The reasons why peers did not finish a workload.
    private(set) var failures: [(peer: String, workload: String, reason: String)] = []

    mutating func add(_ value: Double, _ metric: String, of peer: String, in workload: String, repetition: Int) {
        values[Key(peer: peer, workload: workload, metric: metric), default: [:]][repetition] = value
    }

    mutating func addFailure(_ reason: String, of peer: String, in workload: String) {
        failures.append((peer, workload, reason))
    }

    func failed(_ peer: String, in workload: String) -> Bool {
        failures.contains { $0.peer == peer && $0.workload == workload }
    }

    func median(_ metric: String, of peer: String, in workload: String) -> Double? {
        values[Key(peer: peer, workload: workload, metric: metric)].map { Array($0.values).median }
    }

    /// Returns the median of the ratios of each repetition, which compares neighbours in time; or the ratio of the
    /// medians if one of the two was measured only once.
    func ratio(_ metric: String, of peer: String, to other: String, in workload: String) -> Double? {
        ratio([metric], of: peer, to: other, in: workload)
    }

    /// Returns the ratio of the sums of several metrics.
    func ratio(_ metrics: [String], of peer: String, to other: String, in workload: String) -> Double? {
        let mine = sums(metrics, of: peer, in: workload), others = sums(metrics, of: other, in: workload)
        guard !mine.isEmpty, !others.isEmpty else { return nil }
        let ratios = mine.compactMap { repetition, value in others[repetition].map { value / $0 } }
        return ratios.isEmpty ? Array(mine.values).median / Array(others.values).median : ratios.median
    }

    private func sums(_ metrics: [String], of peer: String, in workload: String) -> [Int: Double] {
        let parts = metrics.map { values[Key(peer: peer, workload: workload, metric: $0)] ?? [:] }
        guard let first = parts.first else { return [:] }
        return first.reduce(into: [:]) { sums, entry in
            let all = parts.compactMap { $0[entry.key] }
            if all.count == parts.count { sums[entry.key] = all.reduce(0, +) }
        }
    }

    /// Returns the peer with the smallest median.
    func best(_ metric: String, in workload: String, among peers: [Peer]) -> String? {
        peers.compactMap { peer in median(metric, of: peer.name, in: workload).map { (peer.name, $0) } }
            .min { $0.1 < $1.1 }?.0
    }
}

extension [Double] {
    /// - Precondition: there is a value.
    var median: Double {
        let sorted = self.sorted()
        let middle = sorted.count / 2
        return sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
    }
}
