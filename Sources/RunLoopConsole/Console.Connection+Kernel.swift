internal import CShims
internal import RunLoopKit
internal import RunLoopUnix

extension Console.Connection {
    /// The kernel's knowledge of the descriptor of an item; `nil` if that is no connected stream socket. The kernel counts in
    /// any case, so a connection costs nothing more because it is shown.
    init?(_ item: RunLoop.Dump.Item) {
        guard let descriptor = item.descriptor else { return nil }
        var facts = rlk_stream_facts()
        guard rlk_look_at_stream(descriptor, &facts) == 0 else { return nil }
        let peer = "\(RealSystem.shared.peerAddress(of: descriptor))"
        self.init(
            descriptor: descriptor, name: item.name, origin: "\(item.origin)", peer: peer.isEmpty ? nil : peer,
            received: facts.is_tcp == 0 ? nil : Int(facts.received), sent: facts.is_tcp == 0 ? nil : Int(facts.sent),
            unread: Int(facts.unread), unsent: Int(facts.unsent))
    }
}
