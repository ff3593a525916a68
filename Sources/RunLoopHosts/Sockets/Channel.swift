internal import Glibc
internal import RunLoopCore
@_spi(Ports) internal import RunLoopSimulation
@_spi(Ports) internal import RunLoopUnix

/// One direction of a simulated connection: bytes that were written at one end and have not been read at the other.
///
/// As in TCP, bytes arrive in order and once, or the sender learns of the failure. A piece that meets a cut link or a
/// host that is down is sent again, after 200 ms, then twice as long each time up to two minutes; after a quarter of an
/// hour the sender gives up. Within a machine no window limits the bytes under way, and each end has room for 64 KiB.
final class Channel {
    private static let mostOfPiece = 64 * 1024
    private static let longestRetransmission = Duration.seconds(120)
    private static let patience = Duration.seconds(924)

    private let network: Network
    /// The ends of the channel, which keep it until they are closed.
    private(set) weak var sender: SimulatedSocket?
    private(set) weak var receiver: SimulatedSocket?
    let path: NetworkPath

    /// The unread bytes: first the arrived ones, then the ones under way, then the ones that wait to be sent.
    private let bytes = ByteBuffer(capacity: 64)
    private var arrived = 0
    private var underWay = 0
    /// The pieces that are under way, the first to arrive first; the end of the stream is a piece without bytes.
    private var pieces: [(count: Int, arrival: RunLoop.Instant)] = []
    private var arrival: Appointment?
    /// The time when the last piece arrives; no other may come before it.
    private var lastArrival = RunLoop.Instant.distantPast
    /// The limit of the bytes under way; `nil` within a machine.
    private var window: CongestionWindow?
    private var receiveWindow = ReceiveWindow()
    /// `true` if more is sent when the next bytes are acknowledged.
    private var isToContinue = false
    /// The time since which the first piece finds no way, and the pause before it is sent again.
    private var trouble: (since: RunLoop.Instant, pause: Duration)?

    /// The numbers of all bytes that were ever written, and read.
    private var (writtenCount, readCount) = (0, 0)
    /// The targets of descriptors that were sent with some of the bytes, the first ones first.
    private var attachments: [(bytes: Range<Int>, targets: [OpenDescription])] = []
    /// The targets that came with the bytes of the last read.
    private var received: [OpenDescription] = []

    private enum End {
        case open, waiting, underWay, arrived
    }

    /// The end of the stream, which follows the last byte.
    private var ending = End.open
    private var isBroken = false

    init(_ network: Network, from sender: SimulatedSocket, to receiver: SimulatedSocket) {
        self.network = network
        (self.sender, self.receiver) = (sender, receiver)
        path = NetworkPath(from: sender.table, to: receiver.table)
        if !path.isLoopback { window = CongestionWindow() }
    }

    // MARK: The writing end

    /// The number of bytes that the channel accepts now.
    var room: Int { isBroken ? 0 : max(0, sendCapacity - (bytes.count - arrived)) }
    /// The size of the send buffer: twice the window, as on Linux.
    private var sendCapacity: Int {
        min(max(2 * (window?.size ?? 0), ReceiveWindow.least), CongestionWindow.most)
    }
    /// The number of bytes that have not arrived, plus one for an end that has not.
    var unsent: Int { isBroken ? 0 : bytes.count - arrived + (ending == .waiting || ending == .underWay ? 1 : 0) }
    /// `true` if the channel reports as writable: as for the system's sockets, a third of the room must be free.
    var isWritable: Bool { room >= sendCapacity / 3 }

    func write(_ new: UnsafeRawBufferPointer) -> Int {
        let most = min(room, new.count)
        if most < new.count { network.simulation.meet(.socketFull) }
        guard most > 0 else { return 0 }
        // Sometimes the system accepts less than it could.
        let chance = network.chance
        let count = chance.outcome(
            chance.once(in: 16) ? chance.number(in: 1...most) : most, on: path.from.name, "writes to \(path.to.name)",
            usual: most, in: 1...most)
        if count < new.count { network.simulation.meet(.writePartial) }
        bytes.append(UnsafeRawBufferPointer(rebasing: new.prefix(count)))
        writtenCount += count
        send()
        return count
    }

    /// Sends the targets of descriptors with the bytes of the last write.
    func attach(_ targets: [OpenDescription], to count: Int) {
        for target in targets { target.hold() }
        attachments.append((writtenCount - count..<writtenCount, targets))
    }

    /// `true` if the stream ends after the written bytes.
    var isEnding: Bool { ending != .open }

    func end() {
        guard !isEnding else { return }
        ending = .waiting
        send()
    }

    /// Sends as many bytes as the window allows and the other end has room for, in pieces of legal but odd sizes.
    private func send() {
        guard !isBroken else { return }
        while true {
            let waiting = bytes.count - arrived - underWay
            let roomInWindow = window?.room(beside: underWay, at: network.simulation.now) ?? .max
            let most = min(waiting, receiveWindow.size - arrived - underWay, roomInWindow, Self.mostOfPiece)
            guard most > 0 else {
                if waiting > 0 { continueLater() }
                if waiting == 0 && ending == .waiting {
                    ending = .underWay
                    launch(0)
                }
                return
            }
            let chance = network.chance
            let isOdd = chance.once(in: 8)
            let drawn = isOdd ? chance.number(in: 1...(chance.once(in: 2) ? min(most, 8) : most)) : most
            launch(chance.outcome(drawn, on: path.from.name, "sends to \(path.to.name)", usual: most, in: 1...most))
        }
    }

    private func launch(_ count: Int) {
        let (delay, loss) = network.delay(
            of: count, inPackets: CongestionWindow.packets(of: count),
            amid: CongestionWindow.packets(of: underWay + count), on: path)
        switch loss {
        case .none: break
        case .recovered: window?.halve()
        case .timedOut: window?.collapse()
        }
        // A nanosecond apart, so that consecutive pieces are found one by one.
        lastArrival = max(network.simulation.now + delay, lastArrival + .nanoseconds(1))
        pieces.append((count, lastArrival))
        underWay += count
        if arrival == nil { expect(at: lastArrival) }
    }

    /// Sends more when enough was acknowledged. Called again when more has arrived, if too little has.
    private func continueLater() {
        guard !isToContinue, let date = window?.nextRoom(beside: underWay) else { return }
        isToContinue = true
        _ = network.simulation.schedule(
            at: max(date, network.simulation.now), "bytes are acknowledged", from: path.to.name, on: path.from.name
        ) { [self] in
            isToContinue = false
            let couldWrite = isWritable
            send()
            tellSender(ifItCould: couldWrite)
        }
    }

    /// Tells the sender of room. As in Linux, a set of descriptors hears of it only if there was none.
    private func tellSender(ifItCould couldWrite: Bool) {
        sender?.tell(!couldWrite && isWritable ? Int16(POLLOUT) : 0)
    }

    // MARK: Under way

    private func expect(at date: RunLoop.Instant) {
        arrival = network.simulation.schedule(at: date, "bytes arrive", from: path.from.name, on: path.to.name) {
            [self] in arrive()
        }
    }

    /// Delivers the first piece to the other host, if the way is open.
    private func arrive() {
        arrival = nil
        guard !isBroken, let piece = pieces.first else { return }
        guard network.isOpen(path) else { return retry() }
        guard let receiver, receiver.isOpen else {
            // The connection has no reader any more. The end of the stream needs no answer, and an answer may find no
            // way.
            guard piece.count > 0 else { return breakOff() }
            guard network.isOpen(path.back) else { return retry() }
            network.after(path.back) { [weak sender] in sender?.reset(ECONNRESET) }
            return breakOff()
        }
        note(piece.count == 0 ? .end : .bytes(piece.count), piece.count)
        trouble = nil
        let couldWrite = isWritable
        pieces.removeFirst()
        underWay -= piece.count
        arrived += piece.count
        if piece.count == 0 { ending = .arrived }
        window?.bytesArrived(piece.count, acknowledgedAt: network.simulation.now + network.link(path.back).latency)
        if bytes.count > arrived + underWay { continueLater() }
        if let next = pieces.first { expect(at: max(next.arrival, network.simulation.now)) }
        receiver.tell(piece.count == 0 ? ~0 : Int16(POLLIN | POLLPRI))
        tellSender(ifItCould: couldWrite)
    }

    /// - Parameter count: the size of the first piece that has not arrived.
    private func note(_ message: HostMessage, _ count: Int) {
        network.simulation.note(
            message, from: path.from.name, to: path.to.name, bytes: bytes.bytes.dropFirst(arrived).prefix(count))
    }

    private func retry() {
        let since = trouble?.since ?? network.simulation.now
        let pause = trouble?.pause ?? Network.retransmission
        guard network.simulation.now - since < Self.patience else {
            sender?.reset(ETIMEDOUT)
            return
        }
        if trouble == nil { window?.collapse() }
        note(.lost(pieces[0].count), pieces[0].count)
        network.simulation.meet(.packetSentAgain)
        trouble = (since, min(pause * 2, Self.longestRetransmission))
        expect(at: network.simulation.now + pause)
    }

    /// Breaks the channel: nothing goes through it any more, and bytes that have arrived can still be read.
    func breakOff() {
        isBroken = true
        arrival?.callOff()
        arrival = nil
        pieces.removeAll()
    }

    // MARK: The reading end

    var hasInput: Bool { arrived > 0 }
    /// The number of bytes that can be read.
    var inputCount: Int { arrived }
    var hasEnded: Bool { ending == .arrived }

    /// Copies bytes that have arrived, and keeps them.
    func peek(into room: UnsafeMutableRawBufferPointer) -> Int {
        let count = min(room.count, arrived)
        room.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes.bytes.prefix(count)))
        return count
    }

    func read(into room: UnsafeMutableRawBufferPointer) -> Int {
        dropReceived()
        // As on Linux, a read ends with the bytes that descriptors came with.
        let most = attachments.first.map { $0.bytes.upperBound - readCount } ?? .max
        let count = peek(into: UnsafeMutableRawBufferPointer(rebasing: room.prefix(most)))
        readCount += count
        if let first = attachments.first, first.bytes.lowerBound < readCount {
            received = first.targets
            attachments.removeFirst()
        }
        bytes.discard(count)
        arrived -= count
        if window != nil {
            receiveWindow.bytesRead(count, at: network.simulation.now, roundTrip: network.roundTrip(path))
        }
        // The sender of a Unix socket is told of each read.
        if count > 0, receiver?.family == AF_UNIX { sender?.tell(Int16(POLLOUT)) }
        // A sender with more bytes learns that there is room.
        if bytes.count > arrived + underWay && !isBroken { network.after(path.back) { [weak self] in self?.send() } }
        return count
    }

    /// Calls a closure with the targets that came with the bytes of the last read, and releases them.
    func takeReceived(_ body: ([OpenDescription]) -> Void) {
        body(received)
        dropReceived()
    }

    private func dropReceived() {
        for target in received { target.letGo(-1, of: self) }
        received = []
    }

    /// Releases the targets that will not be read.
    func dropAttachments() {
        dropReceived()
        for target in attachments.flatMap(\.targets) { target.letGo(-1, of: self) }
        attachments = []
    }
}
