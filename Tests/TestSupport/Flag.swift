import Synchronization

/// Something that threads tell one another.
package final class Flag: Sendable {
    private let state = Atomic(false)

    package init() {}

    package var isSet: Bool { state.load(ordering: .acquiring) }

    package func set() {
        state.store(true, ordering: .releasing)
    }
}
