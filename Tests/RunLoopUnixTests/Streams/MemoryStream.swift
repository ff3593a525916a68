internal import Glibc
internal import RunLoopKit
@_spi(Ports) internal import RunLoopUnix

/// One of two ends of a stream in memory: bytes written to one end are read from the other. Both belong to one loop.
final class MemoryStream: ByteStream {
    private let capacity: Int
    private let incoming = ByteBuffer(capacity: 64)
    private weak var peer: MemoryStream?
    private var isClosed = false
    private var hasEnded = false
    private var source: CustomSource?

    var owner: (any StreamOwner)?
    var interest: DescriptorEvents = [] {
        didSet { tell() }
    }

    /// Makes a pair of connected ends.
    ///
    /// - Parameter capacity: the largest number of unread bytes that each end holds.
    static func pair(capacity: Int = 64 * 1024) -> (MemoryStream, MemoryStream) {
        let (one, other) = (MemoryStream(capacity), MemoryStream(capacity))
        (one.peer, other.peer) = (other, one)
        return (one, other)
    }

    private init(_ capacity: Int) {
        self.capacity = capacity
    }

    deinit {
        close(.incomplete)
    }

    var isOpen: Bool { true }
    var holdsInput: Bool { false }
    private(set) var failure: (any StreamFailure)?
    var fileDescriptor: Int32 { -1 }
    var name: String? {
        didSet { source?.name = sourceName }
    }
    private var sourceName: String { name ?? "stream in memory" }

    func open(
        on loop: RunLoop, inModes modes: RunLoop.Modes, origin: RunLoop.Origin, interest: DescriptorEvents
    ) throws(DescriptorError) {
        let source = CustomSource(origin: origin) { [self] _ in
            let ready = readiness.intersection(self.interest)
            if !ready.isEmpty { owner?.streamIsReady(for: ready) }
            tell()
        }
        source.name = sourceName
        source.invalidationHandler = { [unowned self] in owner?.streamLostItsLoop() }
        self.source = source
        loop.add(source, forMode: modes)
        self.interest = interest
    }

    /// The events for which the end is ready now.
    private var readiness: DescriptorEvents {
        var events: DescriptorEvents = []
        if incoming.count > 0 || peer == nil || peer!.hasEnded { events.insert(.readable) }
        if peer == nil || peer!.incoming.count < peer!.capacity { events.insert(.writable) }
        return events
    }

    private func tell() {
        if !interest.isDisjoint(with: readiness) { source?.signal() }
    }

    func read(into room: UnsafeMutableRawBufferPointer) -> StreamResult {
        guard incoming.count > 0 else { return peer == nil || peer!.hasEnded ? .ended : .mustWait }
        let count = min(room.count, incoming.count)
        room.copyMemory(from: UnsafeRawBufferPointer(rebasing: incoming.bytes.prefix(count)))
        incoming.discard(count)
        peer?.tell()
        return .done(count)
    }

    func write(_ bytes: UnsafeRawBufferPointer) -> StreamResult {
        guard let peer, !hasEnded else {
            failure = SystemError("write to the connection", errno: EPIPE)
            return .failed
        }
        let count = min(bytes.count, peer.capacity - peer.incoming.count)
        guard count > 0 || bytes.isEmpty else { return .mustWait }
        peer.incoming.append(UnsafeRawBufferPointer(rebasing: bytes.prefix(count)))
        peer.tell()
        return .done(count)
    }

    func endWriting() -> StreamResult {
        hasEnded = true
        peer?.tell()
        return .done(0)
    }

    func mayClose(peerHasEnded: Bool) -> Bool { true }
    var unsentOutput: Int { 0 }

    /// Removes the stream from its loop. It may be opened on another loop of the thread.
    func leave() {
        source?.invalidationHandler = nil
        source?.invalidate()
        (source, owner) = (nil, nil)
    }

    func close(_ ending: StreamEnding) {
        guard !isClosed else { return }
        (isClosed, hasEnded) = (true, true)
        leave()
        let formerPeer = peer
        formerPeer?.peer = nil
        peer = nil
        formerPeer?.tell()
    }
}
