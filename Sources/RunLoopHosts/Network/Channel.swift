internal import Glibc
internal import RunLoopCore
internal import RunLoopSimulation
internal import RunLoopUnix

/// One direction of a simulated connection: bytes that were written at one end and have not been read at the other.
///
/// As in TCP, what is sent arrives in order and once, or the sender is told that it did not. A piece that meets a cut link
/// or a host that is down is sent again, after 200 ms, then twice as long each time up to two minutes; after a quarter of an
/// hour the sender gives up.
final class Channel {
    /// How much waits at either end at most.
    private static let capacity = 64 * 1024
    private static let firstRetransmission = Duration.milliseconds(200)
    private static let longestRetransmission = Duration.seconds(120)
    private static let patience = Duration.seconds(924)

    private let network: Network
    /// Who writes, and who reads. They keep the channel, and let go of it when they are closed.
    private(set) weak var sender: (any ChannelEnd)?
    private(set) weak var receiver: (any ChannelEnd)?
    private let path: NetworkPath

    /// What was not read: first what has arrived, then what is under way, then what waits to be sent.
    private let bytes = ByteBuffer(capacity: 64)
    private var arrived = 0
    private var underWay = 0
    /// The pieces that are under way, the first to arrive first.
    private var pieces: [Piece] = []
    private var arrival: Appointment?
    /// When the last piece arrives: no other may come before it.
    private var lastArrival = RunLoop.Instant.distantPast
    /// Since when the first piece finds no way, and how long it waits until it is sent again.
    private var trouble: (since: RunLoop.Instant, pause: Duration)?

    private var isEnding = false
    private var hasSentEnd = false
    private(set) var hasEnded = false
    /// Nothing goes through it any more.
    private var isBroken = false

    private struct Piece {
        let count: Int
        let arrival: RunLoop.Instant
        /// The end of what is written.
        let isEnd: Bool
    }

    init(_ network: Network, from sender: any ChannelEnd, to receiver: any ChannelEnd) {
        self.network = network
        (self.sender, self.receiver) = (sender, receiver)
        path = NetworkPath(from: sender.machine, to: receiver.machine)
    }

    // MARK: The end that writes

    /// How many bytes it would take.
    var room: Int { isBroken ? 0 : Self.capacity - (bytes.count - arrived) }
    /// How many bytes have not arrived, with one for an end that has not.
    var unsent: Int { isBroken ? 0 : bytes.count - arrived + (isEnding && !hasEnded ? 1 : 0) }
    /// As of the system's sockets, a third must be free before a writer is told of it.
    var isWritable: Bool { room >= Self.capacity / 3 }

    func write(_ new: UnsafeRawBufferPointer) -> Int {
        let most = min(room, new.count)
        guard most > 0 else { return 0 }
        // Now and then the system takes less than it could.
        let surroundings = network.surroundings
        let count = surroundings.outcome(
            surroundings.chance(of: 16) ? surroundings.random(in: 1...most) : most, on: path.from.name,
            "writes to \(path.to.name)", usual: most, in: 1...most)
        bytes.append(UnsafeRawBufferPointer(rebasing: new.prefix(count)))
        send()
        return count
    }

    /// Nothing more is written.
    func end() {
        guard !isEnding else { return }
        isEnding = true
        send()
    }

    /// Sends what the other end has room for, in pieces of legal but odd sizes.
    private func send() {
        guard !isBroken else { return }
        while true {
            let waiting = bytes.count - arrived - underWay
            let most = min(waiting, Self.capacity - arrived - underWay)
            guard most > 0 else {
                if waiting == 0 && isEnding && !hasSentEnd {
                    hasSentEnd = true
                    launch(0, isEnd: true)
                }
                return
            }
            let surroundings = network.surroundings
            let isOdd = surroundings.chance(of: 8)
            let drawn = isOdd ? surroundings.random(in: 1...(surroundings.chance(of: 2) ? min(most, 8) : most)) : most
            let count = surroundings.outcome(
                drawn, on: path.from.name, "sends to \(path.to.name)", usual: most, in: 1...most)
            launch(count, isEnd: false)
        }
    }

    private func launch(_ count: Int, isEnd: Bool) {
        let delay = network.delay(of: count, on: path)
        // A nanosecond apart, so that pieces that follow one another are found one by one.
        lastArrival = max(network.surroundings.now + delay, lastArrival + .nanoseconds(1))
        pieces.append(Piece(count: count, arrival: lastArrival, isEnd: isEnd))
        underWay += count
        if arrival == nil { expect(at: lastArrival) }
    }

    // MARK: Under way

    private func expect(at date: RunLoop.Instant) {
        arrival = network.surroundings.schedule(at: date, "bytes arrive", from: path.from.name, on: path.to.name) {
            [self] in arrive()
        }
    }

    /// The first piece has come to the other host, if it gets there.
    private func arrive() {
        arrival = nil
        guard !isBroken, let piece = pieces.first else { return }
        guard network.isOpen(path) else { return retry() }
        guard let receiver, receiver.isOpen else {
            // Nobody reads there any more. The end needs no answer, and an answer may find no way.
            guard !piece.isEnd else { return breakOff() }
            guard network.isOpen(path.back) else { return retry() }
            network.after(path.back) { [weak sender] in sender?.reset(ECONNRESET) }
            return breakOff()
        }
        note(piece.isEnd ? .end : .bytes(piece.count))
        trouble = nil
        pieces.removeFirst()
        underWay -= piece.count
        arrived += piece.count
        if piece.isEnd { hasEnded = true }
        if let next = pieces.first { expect(at: max(next.arrival, network.surroundings.now)) }
        receiver.tell()
        sender?.tell()
    }

    private func note(_ message: HostMessage) {
        network.surroundings.note(message, from: path.from.name, to: path.to.name)
    }

    private func retry() {
        let since = trouble?.since ?? network.surroundings.now
        let pause = trouble?.pause ?? Self.firstRetransmission
        guard network.surroundings.now - since < Self.patience else {
            sender?.reset(ETIMEDOUT)
            return
        }
        note(.lost(pieces[0].count))
        trouble = (since, min(pause * 2, Self.longestRetransmission))
        expect(at: network.surroundings.now + pause)
    }

    /// Nothing goes through it any more. What has arrived can be read.
    func breakOff() {
        isBroken = true
        arrival?.callOff()
        arrival = nil
        pieces.removeAll()
    }

    // MARK: The end that reads

    var hasInput: Bool { arrived > 0 }

    func read(into room: UnsafeMutableRawBufferPointer) -> Int {
        let count = min(room.count, arrived)
        room.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes.bytes.prefix(count)))
        bytes.discard(count)
        arrived -= count
        let isWaiting = bytes.count > arrived + underWay
        // The sender hears that there is room.
        if isWaiting && !isBroken { network.after(path.back) { [weak self] in self?.send() } }
        return count
    }
}

/// Who writes to a channel, or reads from it.
protocol ChannelEnd: AnyObject {
    var machine: Machine { get }
    var isOpen: Bool { get }
    /// What it is ready for may have changed.
    func tell()
    /// The other side, or the way to it, has failed.
    func reset(_ reason: Int32)
}
