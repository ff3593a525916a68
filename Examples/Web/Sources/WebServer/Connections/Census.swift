internal import Synchronization

/// Counts the open connections, in total and by peer. Any thread.
final class Census: Sendable {
    /// The decision about a new connection.
    enum Admission {
        case served
        /// The connection's first request is refused, with an answer.
        case refused(Refusal.Limit)
        /// The connection is closed at once, because many others wait for such an answer.
        case dropped
    }

    private struct State {
        var total = 0
        var peers: [String: Int] = [:]
    }
    private let state = Mutex(State())

    /// The largest number of connections above the limit that get an answer.
    private static let mostRefused = 64

    var count: Int { state.withLock { $0.total } }

    /// Adds a connection, which leaves when it has closed, whatever the result.
    func enter(_ peer: String, _ limits: Limits) -> Admission {
        state.withLock { state in
            state.total += 1
            state.peers[peer, default: 0] += 1
            let most = limits.connections + Self.mostRefused
            if state.total > most || state.peers[peer]! > limits.connectionsPerPeer + Self.mostRefused {
                return .dropped
            }
            if state.total > limits.connections { return .refused(.connections) }
            return state.peers[peer]! > limits.connectionsPerPeer ? .refused(.connectionsPerPeer) : .served
        }
    }

    func leave(_ peer: String) {
        state.withLock { state in
            state.total -= 1
            state.peers[peer]! -= 1
            if state.peers[peer] == 0 { state.peers[peer] = nil }
        }
    }
}
