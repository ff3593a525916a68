@_spi(Ports) internal import RunLoopKit

extension Connection {
    /// A shared bound on the unused input of many connections, for example of all clients of a listener, a group or a
    /// process.
    ///
    /// ```swift
    /// var limits = Connection.Limits()
    /// limits.inputBudget = Connection.InputBudget(bytes: 256 << 20)
    /// ```
    ///
    /// ``Limits/maximumInput`` bounds each connection, but many connections may each stay below it. With a shared
    /// budget, a connection whose ``Connection/unusedInput`` and ``Connection/heldInput`` grow beyond the rest of the
    /// budget closes with ``CloseReason/inputLimit``; the others stay open. The counted bytes occupy at most twice as
    /// much memory. `Sendable`; the connections may be on several loops.
    public final class InputBudget: Sendable {
        /// The maximum number of bytes that all connections may hold together.
        public let bytes: Int
        private let usedBytes = Locked(0)

        /// Creates a budget.
        ///
        /// - Parameter bytes: the maximum number of bytes that all connections may hold together, at least 1.
        public init(bytes: Int) {
            require(bytes > 0, "a budget has at least one byte, not \(bytes)")
            self.bytes = bytes
        }

        /// The number of bytes that the connections hold now. Any thread.
        public var used: Int { usedBytes.withLock { $0 } }

        /// - Returns: whether the new total is within the budget, or is not more than before.
        func change(by count: Int) -> Bool {
            usedBytes.withLock { used in
                used += count
                assert(used >= 0, "a budget gets back more than it gave")
                return count <= 0 || used <= bytes
            }
        }
    }
}
