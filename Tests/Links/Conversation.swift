import RunLoopHosts
import RunLoopKit

/// A conversation of a client with a server, which is held over a real link and over a simulated one.
struct Conversation: Sendable {
    /// A program of one side; it returns when its sockets are open, and its tasks continue.
    typealias Program = @Sendable (Side) throws -> Void

    let name: String
    /// The link in both directions.
    let link: NetworkLink
    /// The faults, by the time since the client's start.
    var faults: [Fault] = []
    /// The most by which times may differ. Other than this only where the kernel's TCP is finer than the simulation's.
    var tolerance = Tolerance.busyMachine
    /// The most by which the numbers of datagrams may differ.
    var countTolerance = 0
    /// Whether chance plays a part, so that more runs are compared.
    var isRandom = false
    let server: Program
    let client: Program
    /// The results and errors of each side, in their order; the same over both links.
    let expected: [Side.Name: [String]]

    enum Fault: Sendable {
        /// Nothing arrives any more, in either direction; until the second time, or for good.
        case cut(at: Duration, until: Duration?)
        /// The server's process receives SIGKILL.
        case killServer(at: Duration)
    }

    /// A share of the real time, and a time on top.
    struct Tolerance: Sendable {
        var share = 0.0
        let time: Duration

        /// The time by which processes that share a machine with others are late.
        static let busyMachine = Tolerance(time: .milliseconds(40))
    }

    /// How often it is held over each link.
    var runs: Int { isRandom ? 5 : 3 }

    static func named(_ name: String) -> Conversation? { all.first { $0.name == name } }
}

extension NetworkLink {
    /// A link of Ethernet's packets.
    init(latency: Duration, jitter: Duration = .zero, bandwidth: Int? = nil, lossRate: Double = 0) {
        self.init()
        (self.latency, self.jitter, self.bandwidth, self.lossRate) = (latency, jitter, bandwidth, lossRate)
        mtu = 1_500
    }
}
