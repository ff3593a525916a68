internal import RunLoopKit

extension Connection {
    /// Bounds the unused input of many connections together, for example of all clients of a listener, a group or a
    /// process.
    ///
    /// ```swift
    /// var limits = Connection.Limits()
    /// limits.inputBudget = Connection.InputBudget(bytes: 256 << 20)
    /// ```
    ///
    /// ``Limits/maximumInput`` bounds each connection, and many connections may each stay below it. Give all of them
    /// the same budget: a connection whose ``Connection/unusedInput`` and ``Connection/heldInput`` grow beyond the rest
    /// of the budget closes with ``CloseReason/inputLimit``. The others stay open. The memory behind the counted bytes
    /// is at most twice as much. `Sendable`; the connections may be on several loops.
    public final class InputBudget: Sendable {
        /// The most bytes that all connections may hold together.
        public let bytes: Int
        private let usedBytes = Locked(0)

        /// Makes a budget.
        ///
        /// - Parameter bytes: the most bytes that all connections may hold together, at least 1.
        public init(bytes: Int) {
            require(bytes > 0, "a budget has at least one byte, not \(bytes)")
            self.bytes = bytes
        }

        /// The bytes that the connections hold now. Any thread.
        public var used: Int { usedBytes.withLock { $0 } }

        /// - Returns: whether the new total is within the budget, or is not more than before.
        func change(by count: Int) -> Bool {
            usedBytes.withLock { used in
                used += count
                return count <= 0 || used <= bytes
            }
        }
    }
}
