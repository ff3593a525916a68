/// A handler that a loop calls, as a monitor or a recorder names it.
struct Callee: Sendable {
    let kind: RunLoop.ItemKind
    let name: String?
    let origin: RunLoop.Origin
    /// Of the task, the post, or the timer that fires once; 0 for others. With it a flight finds the cause of a call.
    let number: UInt64

    init(_ kind: RunLoop.ItemKind, _ name: String?, _ origin: RunLoop.Origin, number: UInt64 = 0) {
        (self.kind, self.name, self.origin, self.number) = (kind, name, origin, number)
    }
}
