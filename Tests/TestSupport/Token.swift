/// An object whose lifetime is observed.
package final class Token: Sendable {
    private let onRelease: @Sendable () -> Void

    package init(onRelease: @escaping @Sendable () -> Void = {}) {
        self.onRelease = onRelease
    }

    deinit {
        onRelease()
    }

    /// Does nothing; a closure that calls it keeps the token.
    package func touch() {}
}
