import Synchronization

/// A flag that one thread sets for others.
package final class Flag: Sendable {
    private let state = Atomic(false)

    package init() {}

    package var isSet: Bool { state.load(ordering: .acquiring) }

    package func set() {
        state.store(true, ordering: .releasing)
    }
}
