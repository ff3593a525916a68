import Glibc
import RunLoopKit
import RunLoopUnix

/// A network device whose packets are read and written by this process.
final class TunnelDevice {
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

    /// Returns the next packet that the kernel has sent; `nil` if there is none.
    func read() -> [UInt8]? {
        let count = Glibc.read(descriptor, room.baseAddress!, room.count)
        return count > 0 ? Array(room.prefix(count)) : nil
    }

    func write(_ packet: [UInt8]) {
        _ = packet.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress!, $0.count) }
    }
}
