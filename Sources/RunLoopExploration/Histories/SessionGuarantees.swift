/// The promises of a system that keeps only the order of each client's own operations, as replicas that lag behind one
/// another do: the four of Terry and others. A `Sendable` value.
///
/// ``History/check(_:reads:)`` looks for one order of all operations, changes and reads, in which the model gives each
/// its outcome. The time of an operation does not matter. Each guarantee states which two operations of a client keep
/// their order.
public struct SessionGuarantees: OptionSet, Sendable, Hashable {
    public let rawValue: Int

    public init(rawValue: Int) {
        self.rawValue = rawValue
    }

    /// A read comes after the client's earlier changes: a client finds its own last change, or something newer.
    public static let readYourWrites = Self(rawValue: 1 << 0)

    /// A read comes after the client's earlier reads: a client finds nothing older than before.
    public static let monotonicReads = Self(rawValue: 1 << 1)

    /// A change comes after the client's earlier changes: no client finds the second one without the first one.
    public static let monotonicWrites = Self(rawValue: 1 << 2)

    /// A change comes after the client's earlier reads: no client finds an answer without its question.
    public static let writesFollowReads = Self(rawValue: 1 << 3)

    /// All four guarantees, which together are *sequential consistency*.
    public static let all: Self = [.readYourWrites, .monotonicReads, .monotonicWrites, .writesFollowReads]

    /// Returns `true` if two operations of a client keep their order.
    func keepOrder(ofRead firstIsRead: Bool, beforeRead secondIsRead: Bool) -> Bool {
        switch (firstIsRead, secondIsRead) {
        case (false, true): contains(.readYourWrites)
        case (true, true): contains(.monotonicReads)
        case (false, false): contains(.monotonicWrites)
        case (true, false): contains(.writesFollowReads)
        }
    }
}

extension SessionGuarantees: CustomStringConvertible {
    public var description: String {
        let names: [(Self, String)] = [
            (.readYourWrites, "read your writes"), (.monotonicReads, "monotonic reads"),
            (.monotonicWrites, "monotonic writes"), (.writesFollowReads, "writes follow reads"),
        ]
        let kept = names.filter { contains($0.0) }.map(\.1)
        return kept.isEmpty ? "no guarantee" : kept.joined(separator: ", ")
    }
}
