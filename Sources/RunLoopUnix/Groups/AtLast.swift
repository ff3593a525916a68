/// Calls a block when the last of those who keep it has gone.
final class AtLast: Sendable {
    private let block: @Sendable () -> Void

    init(_ block: @escaping @Sendable () -> Void) {
        self.block = block
    }

    deinit {
        block()
    }
}
