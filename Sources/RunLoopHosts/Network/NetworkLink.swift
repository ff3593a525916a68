@_spi(Ports) internal import RunLoopCore

/// The properties of the link between two hosts, in one direction. A `Sendable` value.
public struct NetworkLink: Sendable, Hashable {
    /// The time that a byte is under way; 500 µs by default.
    public var latency = Duration.microseconds(500)
    /// The longest additional delay, chosen for each piece; zero by default. Bytes of a connection never overtake one
    /// another.
    public var jitter = Duration.zero
    /// The number of bytes that the link carries each second; `nil`, the default, sets no limit. All connections and
    /// datagrams from one host to the other share it: each waits in a queue, of any length, for earlier ones.
    public var bandwidth: Int?
    /// The share of packets that are lost, from 0, the default, to 1. A lost packet of a connection is sent again:
    /// after a round trip if more than three are under way, and otherwise after 200 ms, or a second while connecting,
    /// and then after twice as long each time. A lost datagram stays lost.
    public var lossRate = 0.0
    /// The share of datagrams that arrive twice, from 0, the default, to 1.
    public var duplicationRate = 0.0
    /// The share of datagrams that later ones overtake, from 0, the default, to 1: such a datagram takes up to ten
    /// milliseconds longer. ``jitter`` lets datagrams overtake one another as well.
    public var reorderingRate = 0.0
    /// The largest packet in bytes, with its headers, at least 1,280; `nil`, the default, sets no limit. A longer
    /// datagram is sent in pieces, and lost with any of them, or fails with `EMSGSIZE` if its socket does not allow
    /// pieces.
    public var mtu: Int?

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
        let rates = [("lossRate", lossRate), ("duplicationRate", duplicationRate), ("reorderingRate", reorderingRate)]
        for (name, rate) in rates {
            require(0...1 ~= rate, "a link's \(name) is from 0, for nothing, to 1, for all")
        }
        require(mtu ?? 1_280 >= 1_280, "a link's mtu is at least 1,280 bytes, as IPv6 demands")
    }
}
