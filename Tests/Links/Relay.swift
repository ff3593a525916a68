import Glibc
import RunLoopHosts
import RunLoopKit
import RunLoopUnix

/// A link between two network namespaces, with the properties of a ``NetworkLink``: it reads the packets that a kernel sends
/// to one device, and writes those that are not lost to another device, when their time has come.
///
/// `tc netem` does the same where the kernel has it; this needs no more than `/dev/net/tun`, and knows cuts.
final class Relay {
    private let loop: RunLoop
    private let client: Device
    private let server: Device
    private var link = NetworkLink()
    /// The number of the conversation: packets that an earlier one has left behind are lost.
    private var conversation = 0
    /// Whether packets that arrive now are lost.
    var isCut = false

    /// - Parameters:
    ///   - client: the name of the client's device; the device is in the namespace of this process at first.
    ///   - server: the name of the server's device.
    init(client: String, server: String, on loop: RunLoop) throws {
        self.loop = loop
        self.client = try Device(client)
        self.server = try Device(server)
        try watch(self.client) { [unowned self] in carry($0, to: self.server) }
        try watch(self.server) { [unowned self] in carry($0, to: self.client) }
    }

    /// Takes the properties of the next conversation's link.
    func prepare(_ link: NetworkLink) {
        (self.link, isCut, conversation) = (link, false, conversation + 1)
    }

    private func watch(_ device: Device, _ carry: @escaping ([UInt8]) -> Void) throws {
        let source = DescriptorSource(fileDescriptor: device.descriptor, events: .readable) { _, _ in
            while let packet = device.read() { carry(packet) }
        }
        try loop.add(source, forMode: .common)
    }

    private func carry(_ packet: [UInt8], to device: Device) {
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

/// A network device whose packets are read and written by this process.
private final class Device {
    let descriptor: Int32
    /// The time when the last byte on its way to the device has left.
    var free = RunLoop.Instant.distantPast
    private let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 65_536, alignment: 16)

    init(_ name: String) throws {
        descriptor = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { throw SystemError("open /dev/net/tun", errno: errno) }
        // A `struct ifreq`, with IFF_TUN and IFF_NO_PI: whole packets of IP, without a header of their own.
        let request = UnsafeMutableRawBufferPointer.allocate(byteCount: 40, alignment: 8)
        defer { request.deallocate() }
        request.initializeMemory(as: UInt8.self, repeating: 0)
        request.copyBytes(from: name.utf8.prefix(15))
        request.storeBytes(of: 0x1001, toByteOffset: 16, as: UInt16.self)
        let setInterface: UInt = 0x4004_54ca
        guard ioctl(descriptor, setInterface, request.baseAddress!) == 0 else {
            throw SystemError("make the device \(name)", errno: errno)
        }
    }

    /// The next packet that the kernel has sent; `nil` if there is none.
    func read() -> [UInt8]? {
        let count = Glibc.read(descriptor, room.baseAddress!, room.count)
        return count > 0 ? Array(room.prefix(count)) : nil
    }

    func write(_ packet: [UInt8]) {
        _ = packet.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress!, $0.count) }
    }
}
