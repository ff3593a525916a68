internal import RunLoopCore

/// The properties of the link between two hosts, in one direction. A value and `Sendable`.
public struct NetworkLink: Sendable, Hashable {
    /// The time that a byte is under way; 500 µs unless set.
    public var latency = Duration.microseconds(500)
    /// The longest additional delay, chosen for each piece; zero unless set. Bytes of a connection never overtake one
    /// another.
    public var jitter = Duration.zero
    /// The number of bytes that go through it each second; `nil`, the default, sets no limit. Each piece counts for
    /// itself, so that connections do not share the limit.
    public var bandwidth: Int?
    /// The share of the pieces that is lost, from 0, the default, to 1. A lost piece is sent again, after 200 ms and
    /// then after twice as long each time.
    public var lossRate = 0.0

    /// Creates a link with the default properties.
    public init() {}

    static let loopback: NetworkLink = {
        var link = NetworkLink()
        link.latency = .microseconds(20)
        return link
    }()

    func check() {
        require(latency >= .zero, "a link's latency is not negative: nothing arrives before it was sent")
        require(jitter >= .zero, "a link's jitter is added to its latency, and is not negative")
        require(bandwidth ?? 1 > 0, "a link's bandwidth is more than zero; cut the link instead")
        require(lossRate >= 0 && lossRate <= 1, "a link's lossRate is from 0, for nothing, to 1, for all")
    }
}
