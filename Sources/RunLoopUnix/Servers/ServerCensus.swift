@_spi(Ports) internal import RunLoopKit

/// The numbers of a server, which all of its loops share. Any thread.
final class ServerCensus: Sendable {
    private struct State {
        var open = 0
        /// Connections that were accepted and wait for room.
        var held = 0
        var refused = 0
        /// True if a loop waits for room.
        var wantsRoom = false
        var emptyHandlers: [@Sendable () -> Void] = []
        var isEmpty: Bool { open == 0 && held == 0 }
    }
    private let state = Locked(State())
    private let most: Int

    init(atMost most: Int) {
        self.most = most
    }

    var open: Int { state.withLock { $0.open } }
    var refused: Int { state.withLock { $0.refused } }

    /// True if there is no room. The next connection to leave then reports that there is.
    var isFull: Bool {
        state.withLock { state in
            guard state.open >= most else { return false }
            state.wantsRoom = true
            return true
        }
    }

    /// Counts a connection, if there is room for it; `false` if there is none.
    func enter() -> Bool {
        state.withLock { state in
            guard state.open < most else { return false }
            assert(state.open >= 0, "a census counts less than no connection")
            state.open += 1
            return true
        }
    }

    /// Counts a connection that has closed. Returns whether a loop waits for its room.
    func leave() -> Bool {
        let (wantsRoom, handlers) = state.withLock { state in
            assert(state.open > 0, "a connection leaves that is not counted")
            state.open -= 1
            defer { state.wantsRoom = false }
            return (state.wantsRoom, takeHandlers(&state))
        }
        for handler in handlers { handler() }
        return wantsRoom
    }

    func hold(_ count: Int) {
        let handlers = state.withLock { state in
            state.held += count
            assert(state.held >= 0, "more connections are served than were held")
            return takeHandlers(&state)
        }
        for handler in handlers { handler() }
    }

    func refuse() {
        state.withLock { $0.refused += 1 }
    }

    /// Calls a block once, when no connection is open or held: now, or on the thread where the last one leaves.
    func whenEmpty(_ block: @escaping @Sendable () -> Void) {
        let handlers = state.withLock { state in
            state.emptyHandlers.append(block)
            return takeHandlers(&state)
        }
        for handler in handlers { handler() }
    }

    private func takeHandlers(_ state: inout State) -> [@Sendable () -> Void] {
        guard state.isEmpty else { return [] }
        defer { state.emptyHandlers = [] }
        return state.emptyHandlers
    }
}
