/// The length of a run, or of the longest runs so far.
struct RunLength: Equatable {
    /// The number of places with more than one possibility.
    var points = 0
    /// The number of places where each kind of fault could have happened.
    var faults: [String: Int] = [:]

    /// Takes over each part of another length that is larger.
    mutating func grow(to other: RunLength) {
        points = max(points, other.points)
        faults.merge(other.faults) { max($0, $1) }
    }
}

extension RunLength: LosslessStringConvertible {
    /// For example `12;a crash=5`.
    var description: String {
        let kinds = faults.sorted { $0.key < $1.key }.map { kind, count in
            "\(kind.escaped { "%;=".utf8.contains($0) })=\(count)"
        }
        return (["\(points)"] + kinds).joined(separator: ";")
    }

    init?(_ text: String) {
        let parts = text.split(separator: ";")
        guard let first = parts.first, let points = Int(first) else { return nil }
        self.points = points
        for part in parts.dropFirst() {
            let words = part.split(separator: "=")
            guard words.count == 2, let kind = String(unescaping: words[0]), let count = Int(words[1]) else {
                return nil
            }
            faults[kind] = count
        }
    }
}
