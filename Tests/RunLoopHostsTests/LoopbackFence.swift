import Glibc
import Testing

/// Waits until the packets in flight on the system's loopback have arrived, however busy the machine is.
///
/// Each processor has a queue of packets from sockets that were used on it. A datagram that is sent on a processor arrives
/// after all packets that were sent there before, but those may have been answered.
final class LoopbackFence {
    private typealias Affinity = @convention(c) (pid_t, Int, UnsafeMutablePointer<UInt>) -> Int32
    /// The bits of 1,024 processors.
    private typealias Processors = [UInt]

    // Looked up by name, because Swift's Glibc module lacks them.
    private let getAffinity = unsafeBitCast(dlsym(nil, "sched_getaffinity"), to: Affinity.self)
    private let setAffinity = unsafeBitCast(dlsym(nil, "sched_setaffinity"), to: Affinity.self)
    private let none = Processors(repeating: 0, count: 1_024 / UInt.bitWidth)
    private let descriptor: Int32
    /// The processors that the thread may use again at the end, if it stays on one of them until then.
    private var former: Processors?

    /// A datagram socket that is connected to itself.
    ///
    /// - Parameter staysOnProcessor: whether the thread stays on a processor, whose queue then has all of its packets.
    init(staysOnProcessor: Bool = false) {
        descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let own = descriptor
        withUnsafeMutableBytes(of: &address) { bytes in
            let address = bytes.baseAddress!.assumingMemoryBound(to: sockaddr.self)
            #expect(bind(own, address, length) == 0)
            #expect(getsockname(own, address, &length) == 0)
            #expect(connect(own, address, length) == 0)
        }
        guard staysOnProcessor else { return }
        let allowed = allowedProcessors()
        var one = none
        let place = allowed.firstIndex { $0 != 0 }!
        one[place] = allowed[place] & ~(allowed[place] - 1)
        use(one)
        former = allowed
    }

    func wait() {
        guard former == nil else {
            // A datagram and its refusal.
            return (0..<2).forEach { _ in passQueue() }
        }
        let allowed = allowedProcessors()
        // Data, its acknowledgement with a wider window, more data, and one to spare.
        for _ in 0..<4 { passQueues(of: allowed) }
        use(allowed)
    }

    private func passQueues(of processors: Processors) {
        for (place, word) in processors.enumerated() {
            for bit in 0..<UInt.bitWidth where word & 1 << bit != 0 {
                var one = none
                one[place] = 1 << bit
                use(one)
                passQueue()
            }
        }
    }

    private func passQueue() {
        var byte: UInt8 = 0
        #expect(send(descriptor, &byte, 1, 0) == 1 && recv(descriptor, &byte, 1, 0) == 1)
    }

    private func allowedProcessors() -> Processors {
        var processors = none
        #expect(getAffinity(0, processors.count * MemoryLayout<UInt>.size, &processors) == 0)
        return processors
    }

    private func use(_ processors: Processors) {
        var processors = processors
        #expect(setAffinity(0, processors.count * MemoryLayout<UInt>.size, &processors) == 0)
    }

    deinit {
        if let former { use(former) }
        close(descriptor)
    }
}
