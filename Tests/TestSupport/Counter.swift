import Synchronization

/// A number that threads add to.
package final class Counter: Sendable {
    private let state = Atomic(0)

    package init() {}

    package var value: Int { state.load(ordering: .acquiring) }

    @discardableResult
    package func add(_ amount: Int = 1) -> Int {
        state.add(amount, ordering: .acquiringAndReleasing).newValue
    }
}
