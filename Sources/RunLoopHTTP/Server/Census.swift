#if Adapters
internal import RunLoopUnix
internal import Synchronization

/// Counts the open connections, in total and by peer. Any thread.
final class Census: Sendable {
    /// The decision about a new connection.
    enum Admission {
        case served
        /// The connection's first request is refused, with an answer.
        case refused(HTTPServer.Limit)
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

    /// Adds a connection, which leaves when it has closed, whatever the result. Clients of a Unix socket have no address, and
    /// count in total only.
    func enter(_ peer: Endpoint, _ limits: HTTPServer.Limits) -> Admission {
        state.withLock { state in
            state.total += 1
            let ofPeer = peer.address.map { address in
                state.peers[address, default: 0] += 1
                return state.peers[address]!
            }
            if state.total > limits.connections + Self.mostRefused { return .dropped }
            if state.total > limits.connections { return .refused(.connections) }
            guard let ofPeer, ofPeer > limits.connectionsPerPeer else { return .served }
            return ofPeer > limits.connectionsPerPeer + Self.mostRefused ? .dropped : .refused(.connectionsPerPeer)
        }
    }

    func leave(_ peer: Endpoint) {
        state.withLock { state in
            assert(state.total > 0, "more connections leave than have come")
            state.total -= 1
            guard let address = peer.address else { return }
            state.peers[address]! -= 1
            if state.peers[address] == 0 { state.peers[address] = nil }
        }
    }
}
#endif
