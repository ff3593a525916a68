import RunLoopHosts
import RunLoopKit
import RunLoopUnix

/// A link between two network namespaces, with the properties of a ``NetworkLink``. It reads the packets that a kernel
/// sends to one device, and writes the surviving ones to another device when their time has come.
///
/// `tc netem` does the same where the kernel has it; a relay only needs `/dev/net/tun`, and supports cuts.
final class Relay {
    private let loop: RunLoop
    private let client: TunnelDevice
    private let server: TunnelDevice
    private var link = NetworkLink()
    /// The number of the conversation: packets left behind by an earlier one are lost.
    private var conversation = 0
    /// `true` while arriving packets are lost.
    var isCut = false

    /// - Parameters:
    ///   - client: the name of the client's device; the device is in the namespace of this process at first.
    ///   - server: the name of the server's device.
    init(client: String, server: String, on loop: RunLoop) throws {
        self.loop = loop
        self.client = try TunnelDevice(client)
        self.server = try TunnelDevice(server)
        try watch(self.client) { [unowned self] in carry($0, to: self.server) }
        try watch(self.server) { [unowned self] in carry($0, to: self.client) }
    }

    /// Takes the properties of the next conversation's link.
    func prepare(_ link: NetworkLink) {
        (self.link, isCut, conversation) = (link, false, conversation + 1)
    }

    private func watch(_ device: TunnelDevice, _ carry: @escaping ([UInt8]) -> Void) throws {
        let source = DescriptorSource(fileDescriptor: device.descriptor, events: .readable) { _, _ in
            while let packet = device.read() { carry(packet) }
        }
        try loop.add(source, forMode: .common)
    }

    private func carry(_ packet: [UInt8], to device: TunnelDevice) {
        // Not, for example, a router solicitation of IPv6.
        guard packet[0] >> 4 == 4 else { return }
        guard !happens(at: link.lossRate) else { return }
        for _ in 0..<(happens(at: link.duplicationRate) ? 2 : 1) {
            var arrival = loop.now + link.latency + atMost(link.jitter)
            if happens(at: link.reorderingRate) { arrival = arrival + atMost(.milliseconds(10)) }
            if let bandwidth = link.bandwidth {
                device.free = max(device.free, loop.now) + .seconds(1) / bandwidth * packet.count
                arrival = arrival + (device.free - loop.now)
            }
            let timer = Timer(at: arrival) { [unowned self, conversation] _ in
                if !isCut && conversation == self.conversation { device.write(packet) }
            }
            loop.add(timer, forMode: .common)
        }
    }

    private func atMost(_ delay: Duration) -> Duration { delay * Double.random(in: 0...1) }

    private func happens(at rate: Double) -> Bool { rate > 0 && Double.random(in: 0..<1) < rate }
}
