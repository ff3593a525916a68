/// An object whose life is watched.
package final class Token: Sendable {
    private let onRelease: @Sendable () -> Void

    package init(onRelease: @escaping @Sendable () -> Void = {}) {
        self.onRelease = onRelease
    }

    deinit {
        onRelease()
    }

    /// Is captured by a closure, so that the closure keeps it.
    package func touch() {}
}
