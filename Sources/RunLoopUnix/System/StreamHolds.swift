internal import Glibc
@_spi(Ports) internal import RunLoopKit

/// The holds of a socket on the time of a simulation whose peer is another process: for output that the peer does not
/// yet accept, and for answers that a task awaits. A peer in the same process lives in simulated time.
@_spi(Ports) public final class StreamHolds {
    private let descriptor: Int32
    private let system: any SystemCalls
    private let loop: RunLoop
    private let origin: RunLoop.Origin
    /// True if the descriptor is a socket whose peer is in another process.
    private lazy var leadsToOther = findsOther()
    private var output: (any TimeHold)?
    /// True if bytes have been written since the last read.
    private var hasAsked = false

    init(_ descriptor: Int32, _ system: any SystemCalls, _ loop: RunLoop, _ origin: RunLoop.Origin) {
        (self.descriptor, self.system, self.loop, self.origin) = (descriptor, system, loop, origin)
    }

    func wrote(all: Bool) {
        assert(descriptor >= 0, "a connection without a descriptor was written to")
        hasAsked = true
        if all {
            output?.release()
            output = nil
        } else if output == nil, leadsToOther {
            output = loop.holdTime(for: "the peer of \(name) to read")
        }
    }

    func hasRead() { hasAsked = false }

    /// Holds the time once for an answer to earlier output; if none comes in time, there is no second wait.
    func holdForAnswer() -> (any TimeHold)? {
        guard hasAsked, leadsToOther else { return nil }
        hasAsked = false
        return loop.holdTime(for: "an answer on \(name)")
    }

    private var name: String { "the connection on descriptor \(descriptor) (\(origin))" }

    // MARK: The peer

    private func findsOther() -> Bool {
        guard let peer = system.peerAddress(of: descriptor).known else { return false }
        guard peer.port != nil else {
            // The numbers of the peer's process, user and group.
            var credentials: [UInt32] = [0, 0, 0]
            var size = socklen_t(12)
            return getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0
                && credentials[0] != UInt32(getpid())
        }
        let descriptors = (system.contentsOfDirectory("/proc/self/fd") ?? []).compactMap { Int32($0) }
        return !descriptors.contains { Self.isSame(system.localAddress(of: $0), peer) }
    }

    /// Returns whether a socket at the address `own` has the address `peer`, or accepts connections for it.
    private static func isSame(_ own: Endpoint, _ peer: Endpoint) -> Bool {
        let isWildcard = ["0.0.0.0:", "[::]:"].contains { own.description.hasPrefix($0) }
        return own.port == peer.port && (isWildcard || own.description == peer.description)
    }
}
