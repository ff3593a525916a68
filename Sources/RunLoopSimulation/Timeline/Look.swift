@_spi(Ports) internal import RunLoopCore

/// A look at the threads of a simulation at one position in its trace.
@_spi(Ports) public final class Look: Sendable {
    private let target: Int
    /// The number of entries so far.
    private let state = Locked((position: 0, isTaken: false))
    private let report: @Sendable ([String]) -> Void

    /// - Parameters:
    ///   - position: the number of earlier entries of the trace.
    ///   - report: receives a line for each thread, and lines for its waits; the last call before the next entry
    ///     counts.
    public init(at position: Int, _ report: @escaping @Sendable ([String]) -> Void) {
        (target, self.report) = (position, report)
    }

    /// Counts a recorded entry of the trace.
    public func advance() {
        state.withLock { $0.position += 1 }
    }

    /// Takes the look at the end of the program, if the position has not been reached.
    func end(_ lookAround: () -> [String]) {
        state.withLock { $0.position = max($0.position, target) }
        take(lookAround)
    }

    /// Takes the look at the position, or as soon as possible after it.
    func take(_ lookAround: () -> [String]) {
        let isNow = state.withLock { state in
            guard state.position == target || state.position > target && !state.isTaken else { return false }
            state.isTaken = true
            return true
        }
        if isNow { report(lookAround()) }
    }
}
