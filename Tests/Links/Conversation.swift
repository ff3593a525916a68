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
    /// The largest permitted difference of times. Other than the default only where the kernel's TCP is finer than the
    /// simulation's.
    var tolerance = Tolerance.busyMachine
    /// The largest permitted difference of the numbers of datagrams.
    var countTolerance = 0
    /// `true` if chance plays a part, so that more runs are compared.
    var isRandom = false
    let server: Program
    let client: Program
    /// The results and errors of each side, in order, over both links.
    let expected: [Side.Name: [String]]

    enum Fault: Sendable {
        /// A cut in both directions, until the second time or for good.
        case cut(at: Duration, until: Duration?)
        /// A SIGKILL to the server's process.
        case killServer(at: Duration)
    }

    /// A share of the real time, plus a fixed time.
    struct Tolerance: Sendable {
        var share = 0.0
        let time: Duration

        /// The lateness of processes that share a machine with others.
        static let busyMachine = Tolerance(time: .milliseconds(40))
    }

    /// The number of runs over each link.
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
