/// The length of a run, or of the longest runs so far.
struct RunLength: Equatable {
    /// The number of places with more than one possibility.
    var points = 0
    /// The number of places where each kind of fault could have happened.
    var faults: [String: Int] = [:]
    /// The number of turns of each task, thread and kind of event, by name.
    var turns: [String: Int] = [:]

    /// The largest number of names with turns that a run has.
    static let mostNames = 256

    /// Adopts each part of another length that is larger.
    mutating func grow(to other: RunLength) {
        points = max(points, other.points)
        faults.merge(other.faults) { max($0, $1) }
        turns.merge(other.turns) { max($0, $1) }
        guard turns.count > Self.mostNames else { return }
        turns = Dictionary(uniqueKeysWithValues: turns.sorted { $0.key < $1.key }.prefix(Self.mostNames).map { $0 })
    }
}

extension RunLength: LosslessStringConvertible {
    /// For example `12;a crash=5;main@3`.
    var description: String {
        func words(_ counts: [String: Int], _ sign: String) -> [String] {
            counts.sorted { $0.key < $1.key }.map { "\($0.escaped { "%;=@".utf8.contains($0) })\(sign)\($1)" }
        }
        return (["\(points)"] + words(faults, "=") + words(turns, "@")).joined(separator: ";")
    }

    init?(_ text: String) {
        let parts = text.split(separator: ";")
        guard let first = parts.first, let points = Int(first) else { return nil }
        self.points = points
        for part in parts.dropFirst() {
            guard let sign = part.firstIndex(where: { $0 == "=" || $0 == "@" }),
                let name = String(unescaping: part[..<sign]), let count = Int(part[part.index(after: sign)...])
            else { return nil }
            if part[sign] == "=" { faults[name] = count } else { turns[name] = count }
        }
    }
}
