/// Calls a block when its last reference is released.
final class AtLast: Sendable {
    private let block: @Sendable () -> Void

    init(_ block: @escaping @Sendable () -> Void) {
        self.block = block
    }

    deinit {
        block()
    }
}
