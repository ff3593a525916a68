internal import Glibc
internal import RunLoopCore
@_spi(Ports) internal import RunLoopSimulation
@_spi(Ports) internal import RunLoopUnix

extension Network {
    /// The longest additional delay of a datagram that others overtake.
    private static let longestHold = Duration.milliseconds(10)

    /// Returns the number of packets that carry a datagram of `count` bytes.
    func packets(_ count: Int, to target: Endpoint, on path: NetworkPath) -> Int {
        guard let mtu = link(path).mtu else { return 1 }
        let payload = mtu - (target.family == AF_INET6 ? 40 : 20)
        // The header of UDP is a part of the payload.
        return (count + 8 + payload - 1) / payload
    }

    /// Carries a datagram, which may be lost, arrive twice, or be overtaken.
    func carry(_ bytes: [UInt8], to target: Endpoint, on path: NetworkPath, _ arrive: @escaping () -> Void) {
        let (link, count) = (link(path), bytes.count)
        let packets = packets(count, to: target, on: path)
        let isLost = chooses("loses a datagram to \(path.to.name)", at: link.lossRate, on: path, tries: packets)
        guard !isLost else { return note(.lost(count), bytes, on: path) }
        let copies = chooses("doubles a datagram to \(path.to.name)", at: link.duplicationRate, on: path) ? 2 : 1
        if copies == 2 { simulation.meet(.datagramDoubled) }
        for _ in 0..<copies {
            let delay = travelTime(of: count, on: path) + hold(on: path, link)
            _ = simulation.schedule(
                at: simulation.now + delay, "a datagram arrives", from: path.from.name, on: path.to.name
            ) { [self] in
                guard isOpen(path) else { return note(.lost(count), bytes, on: path) }
                note(.bytes(count), bytes, on: path)
                arrive()
            }
        }
    }

    private func note(_ message: HostMessage, _ bytes: [UInt8], on path: NetworkPath) {
        simulation.note(message, from: path.from.name, to: path.to.name, bytes: bytes)
        if case .lost = message { simulation.meet(.datagramLost) }
    }

    private func hold(on path: NetworkPath, _ link: NetworkLink) -> Duration {
        guard chooses("holds a datagram to \(path.to.name)", at: link.reorderingRate, on: path) else { return .zero }
        simulation.meet(.datagramHeld)
        return .nanoseconds(chance.number(in: 1...Int(Self.longestHold.nanoseconds)))
    }

    /// Returns `true` if an event happens in any of a number of tries.
    private func chooses(_ what: String, at rate: Double, on path: NetworkPath, tries: Int = 1) -> Bool {
        guard rate > 0 else { return false }
        guard rate < 1 else { return true }
        var happens = false
        for _ in 0..<tries where chance.happens(at: rate) { happens = true }
        return chance.outcome(happens ? 1 : 0, on: path.from.name, what, usual: 0, in: 0...1) == 1
    }
}
