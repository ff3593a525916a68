/// The handler that a loop calls, as monitors and recorders describe it.
struct Callee: Sendable {
    let kind: RunLoop.ItemKind
    let name: String?
    let origin: RunLoop.Origin
    /// The number of the task, the post, or the timer that fires once; 0 for others. A flight finds the cause of a call
    /// by it.
    let number: UInt64

    init(_ kind: RunLoop.ItemKind, _ name: String?, _ origin: RunLoop.Origin, number: UInt64 = 0) {
        (self.kind, self.name, self.origin, self.number) = (kind, name, origin, number)
    }
}
