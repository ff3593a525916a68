/// The path from a machine to another one, or to itself.
struct NetworkPath: Hashable {
    let from: Machine
    let to: Machine

    var back: NetworkPath { NetworkPath(from: to, to: from) }
    var isLoopback: Bool { from === to }

    static func == (one: NetworkPath, other: NetworkPath) -> Bool {
        one.from === other.from && one.to === other.to
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(ObjectIdentifier(from))
        hasher.combine(ObjectIdentifier(to))
    }
}
