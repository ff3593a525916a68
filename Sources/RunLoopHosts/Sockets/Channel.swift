internal import Glibc
internal import RunLoopCore
internal import RunLoopSimulation
internal import RunLoopUnix

/// One direction of a simulated connection: bytes that were written at one end and have not been read at the other.
///
/// As in TCP, bytes arrive in order and once, or the sender learns that they did not. A piece that meets a cut link or
/// a host that is down is sent again, after 200 ms, then twice as long each time up to two minutes; after a quarter of
/// an hour the sender gives up.
final class Channel {
    /// The largest number of bytes that wait at either end.
    private static let capacity = 64 * 1024
    private static let firstRetransmission = Duration.milliseconds(200)
    private static let longestRetransmission = Duration.seconds(120)
    private static let patience = Duration.seconds(924)

    private let network: Network
    /// The two ends. They keep the channel, and release it when they are closed.
    private(set) weak var sender: SimulatedSocket?
    private(set) weak var receiver: SimulatedSocket?
    let path: NetworkPath

    /// The unread bytes: first those that have arrived, then those under way, then those that wait to be sent.
    private let bytes = ByteBuffer(capacity: 64)
    private var arrived = 0
    private var underWay = 0
    /// The pieces that are under way, the first to arrive first.
    private var pieces: [Piece] = []
    private var arrival: Appointment?
    /// The time when the last piece arrives: no other may come before it.
    private var lastArrival = RunLoop.Instant.distantPast
    /// The time since which the first piece finds no way, and the pause before it is sent again.
    private var trouble: (since: RunLoop.Instant, pause: Duration)?

    private enum End {
        case open, waiting, underWay, arrived
    }

    /// The end of the stream, which follows the last byte.
    private var ending = End.open
    /// Whether nothing can go through it any more.
    private var isBroken = false

    /// A number of bytes; the end of the stream is a piece without bytes.
    private struct Piece {
        let count: Int
        let arrival: RunLoop.Instant
    }

    init(_ network: Network, from sender: SimulatedSocket, to receiver: SimulatedSocket) {
        self.network = network
        (self.sender, self.receiver) = (sender, receiver)
        path = NetworkPath(from: sender.table, to: receiver.table)
    }

    // MARK: The writing end

    /// The number of bytes that it accepts now.
    var room: Int { isBroken ? 0 : Self.capacity - (bytes.count - arrived) }
    /// The number of bytes that have not arrived, plus one for an end that has not.
    var unsent: Int { isBroken ? 0 : bytes.count - arrived + (ending == .waiting || ending == .underWay ? 1 : 0) }
    /// Whether it reports as writable: as for the system's sockets, a third must be free.
    var isWritable: Bool { room >= Self.capacity / 3 }

    func write(_ new: UnsafeRawBufferPointer) -> Int {
        let most = min(room, new.count)
        guard most > 0 else { return 0 }
        // Now and then the system accepts less than it could.
        let chance = network.chance
        let count = chance.outcome(
            chance.once(in: 16) ? chance.number(in: 1...most) : most, on: path.from.name, "writes to \(path.to.name)",
            usual: most, in: 1...most)
        bytes.append(UnsafeRawBufferPointer(rebasing: new.prefix(count)))
        send()
        return count
    }

    /// Ends the stream after the written bytes.
    func end() {
        guard ending == .open else { return }
        ending = .waiting
        send()
    }

    /// Sends as many bytes as the other end has room for, in pieces of legal but odd sizes.
    private func send() {
        guard !isBroken else { return }
        while true {
            let waiting = bytes.count - arrived - underWay
            let most = min(waiting, Self.capacity - arrived - underWay)
            guard most > 0 else {
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
        let delay = network.delay(of: count, on: path)
        // A nanosecond apart, so that consecutive pieces are found one by one.
        lastArrival = max(network.simulation.now + delay, lastArrival + .nanoseconds(1))
        pieces.append(Piece(count: count, arrival: lastArrival))
        underWay += count
        if arrival == nil { expect(at: lastArrival) }
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
            // The connection has no reader any more. The end needs no answer, and an answer may find no way.
            guard piece.count > 0 else { return breakOff() }
            guard network.isOpen(path.back) else { return retry() }
            network.after(path.back) { [weak sender] in sender?.reset(ECONNRESET) }
            return breakOff()
        }
        note(piece.count == 0 ? .end : .bytes(piece.count))
        trouble = nil
        pieces.removeFirst()
        underWay -= piece.count
        arrived += piece.count
        if piece.count == 0 { ending = .arrived }
        if let next = pieces.first { expect(at: max(next.arrival, network.simulation.now)) }
        receiver.tell()
        sender?.tell()
    }

    private func note(_ message: HostMessage) {
        network.simulation.note(message, from: path.from.name, to: path.to.name)
    }

    private func retry() {
        let since = trouble?.since ?? network.simulation.now
        let pause = trouble?.pause ?? Self.firstRetransmission
        guard network.simulation.now - since < Self.patience else {
            sender?.reset(ETIMEDOUT)
            return
        }
        note(.lost(pieces[0].count))
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
    var hasEnded: Bool { ending == .arrived }

    func read(into room: UnsafeMutableRawBufferPointer) -> Int {
        let count = min(room.count, arrived)
        room.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes.bytes.prefix(count)))
        bytes.discard(count)
        arrived -= count
        // A sender with more bytes learns that there is room.
        if bytes.count > arrived + underWay && !isBroken { network.after(path.back) { [weak self] in self?.send() } }
        return count
    }
}
