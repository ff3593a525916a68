internal import Glibc
internal import RunLoopKit

/// A race that connects to the first of several addresses to answer (RFC 8305, section 5). Attempts begin one after
/// another, at most ``stagger`` apart. The race's timer keeps it.
final class SocketRace {
    /// The time after which the next attempt begins beside a pending one.
    static let stagger = Duration.milliseconds(250)

    private let loop: RunLoop
    private let modes: RunLoop.Modes
    private let origin: RunLoop.Origin
    private var waiting: ArraySlice<Endpoint>
    private var sockets: [ConnectingSocket] = []
    private var failures: [SystemError] = []
    private var completion: ((ConnectionAttempt.Outcome) -> Void)?
    private var next: Timer?
    private var deadline: Timer?

    /// Starts a race of one or more addresses. The outcome is never reported before this call has returned.
    init(
        _ addresses: [Endpoint], on loop: RunLoop, _ modes: RunLoop.Modes, until date: RunLoop.Instant,
        _ origin: RunLoop.Origin, _ completion: @escaping (ConnectionAttempt.Outcome) -> Void
    ) {
        (self.loop, self.modes, self.origin) = (loop, modes, origin)
        (waiting, self.completion) = (addresses[...], completion)
        let deadline = Timer(at: date, origin: origin) { [self] _ in
            let pending = sockets.map { SystemError("connect to \($0.address)", errno: ETIMEDOUT) }
            finish(.failure(.addresses(failures + pending)))
        }
        deadline.name = "timeout of connecting to \(waiting.map(\.description).joined(separator: ", "))"
        loop.add(deadline, forMode: modes)
        self.deadline = deadline
        beginNext()
    }

    /// Returns addresses in the order in which to try them (RFC 8305, section 4): the families in turn, IPv6 first, and
    /// within a family in the given order.
    static func order(_ addresses: [Endpoint]) -> [Endpoint] {
        let six = addresses.filter { $0.family == AF_INET6 }
        let others = addresses.filter { $0.family != AF_INET6 }
        return (0..<max(six.count, others.count)).flatMap {
            six.dropFirst($0).prefix(1) + others.dropFirst($0).prefix(1)
        }
    }

    func cancel() {
        completion = nil
        next?.invalidate()
        deadline?.invalidate()
        (next, deadline) = (nil, nil)
        for socket in sockets { socket.cancel() }
        sockets.removeAll()
    }

    private func beginNext() {
        next?.invalidate()
        next = nil
        assert(completion != nil, "a race that has ended tries another address")
        guard let address = waiting.popFirst() else { return }
        sockets.append(ConnectingSocket(address, on: loop, modes, origin) { [self] in ended($0, $1) })
        guard !waiting.isEmpty else { return }
        let timer = Timer(at: loop.now + Self.stagger, origin: origin) { [self] _ in beginNext() }
        timer.name = "next address after \(address)"
        loop.add(timer, forMode: modes)
        next = timer
    }

    private func ended(_ socket: ConnectingSocket, _ reason: Int32) {
        guard let index = sockets.firstIndex(where: { $0 === socket }) else { return }
        sockets.remove(at: index)
        if reason == 0 {
            finish(.success(socket.takeStream()))
        } else {
            socket.cancel()
            failures.append(SystemError("connect to \(socket.address)", errno: reason))
            beginNext()
            if sockets.isEmpty { finish(.failure(.addresses(failures))) }
        }
    }

    /// - Parameter result: evaluated after the other sockets are closed.
    private func finish(_ result: @autoclosure () -> ConnectionAttempt.Outcome) {
        let completion = completion
        cancel()
        completion?(result())
    }
}

/// A connecting socket, which closes its descriptor unless its stream is taken.
private final class ConnectingSocket {
    let address: Endpoint
    private let system: any SystemCalls
    private var descriptor: Int32
    private weak var source: DescriptorSource?

    /// Connects, and calls `completion` once with the system's error number, or 0, never before this call has returned.
    init(
        _ address: Endpoint, on loop: RunLoop, _ modes: RunLoop.Modes, _ origin: RunLoop.Origin,
        _ completion: @escaping (ConnectingSocket, Int32) -> Void
    ) {
        (self.address, system) = (address, WorldSystem.of(loop))
        descriptor = system.socket(address.family)
        let status = descriptor < 0 ? -1 : system.connect(descriptor, to: address)
        let reason = errno
        guard status == 0 || reason == EINPROGRESS else {
            loop.perform(inModes: modes) { completion(self, reason) }
            return
        }
        let source = DescriptorSource(fileDescriptor: descriptor, events: .writable, origin: origin) {
            [self] source, _ in
            source.invalidate()
            completion(self, system.option(descriptor, SOL_SOCKET, SO_ERROR) ?? EBADF)
        }
        source.name = "connecting to \(address)"
        do {
            try loop.add(source, forMode: modes)
            self.source = source
        } catch {
            loop.perform(inModes: modes) { completion(self, EBADF) }
        }
    }

    deinit {
        cancel()
    }

    func cancel() {
        source?.invalidate()
        if descriptor >= 0 { system.close(descriptor) }
        descriptor = -1
    }

    func takeStream() -> any ByteStream {
        assert(descriptor >= 0, "a socket is taken that was closed")
        defer { descriptor = -1 }
        return DescriptorStream(input: descriptor, output: descriptor, system, isClient: true)
    }
}
