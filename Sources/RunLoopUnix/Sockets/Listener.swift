internal import CShims
internal import Glibc
public import RunLoopKit

/// Accepts connections on a TCP or Unix socket.
///
/// ```swift
/// let listener = try Listener(address: Endpoint("127.0.0.1", port: 7000), on: loop) { listener, descriptor, peer in
///     …
/// }
/// ```
///
/// When the process or the system has no descriptor left, accepting neither spins nor dies: the connection at hand is
/// refused with a descriptor that was kept in reserve, the error handler is told, and accepting pauses for a while.
///
/// The loop keeps a listener until it is closed. It belongs to the loop's thread.
public final class Listener {
    /// How to listen.
    public struct Options: Sendable {
        /// How many connections may wait to be accepted.
        public var backlog: Int32 = 511
        /// Whether other processes may listen on the same port, which the system then spreads connections over.
        public var reusesPort = false
        /// Whether an IPv6 socket takes IPv4 connections as well.
        public var isDualStack = true
        /// Whether what is written goes out at once, without waiting to be joined by more (`TCP_NODELAY`).
        public var hasNoDelay = true
        /// Whether a Unix socket's path that nobody listens on any more is taken over.
        public var replacesStalePath = true
        /// How many connections a pass accepts.
        public var budget = 64
        /// How long accepting pauses when there is no descriptor left.
        public var pause = Duration.milliseconds(100)

        /// The usual ones.
        public init() {}
    }

    /// Called with a connected descriptor, which is non-blocking and from now on the handler's, and with its peer.
    public typealias AcceptHandler = (Listener, Int32, Endpoint) -> Void

    /// Where it was made.
    public let origin: RunLoop.Origin

    /// The listening descriptor.
    public let fileDescriptor: Int32
    /// Called when a connection could not be accepted; accepting goes on, after a pause if descriptors are short.
    public var errorHandler: ((Listener, SystemError) -> Void)?
    /// How many connections were accepted, and how many refused for want of a descriptor.
    public private(set) var accepted = 0
    /// How many connections were refused for want of a descriptor.
    public private(set) var refused = 0

    private let loop: RunLoop
    private let modes: RunLoop.Modes
    private let options: Options
    private let isTCP: Bool
    private var handler: AcceptHandler?
    private var source: DescriptorSource?
    private var resumption: Timer?
    private var reserve: Int32 = -1
    /// The path to be removed at the end.
    private let path: String?

    /// Listens on an address.
    ///
    /// - Parameters:
    ///   - address: where; with port 0 the system chooses one, see ``address``.
    ///   - loop: the loop that accepts.
    ///   - modes: the modes that it accepts in.
    ///   - options: how to listen.
    ///   - handler: called with each connection; kept until the listener is closed.
    /// - Throws: ``SystemError`` as `EADDRINUSE`, `EACCES`, `EADDRNOTAVAIL`.
    public convenience init(
        address: Endpoint, on loop: RunLoop, modes: RunLoop.Modes = .common, options: Options = Options(),
        handler: @escaping AcceptHandler, file: StaticString = #fileID, line: UInt32 = #line
    ) throws {
        let descriptor = try ListeningSocket.open(address, options)
        let path = address.path.flatMap { $0.hasPrefix("@") ? nil : $0 }
        try self.init(
            inherited: descriptor, path: path, on: loop, modes: modes, options: options, handler: handler,
            file: file, line: line)
    }

    /// Accepts on a descriptor that listens already, as one that a service manager has handed over.
    ///
    /// - Throws: ``SystemError`` with `EINVAL` if the descriptor does not listen, and ``DescriptorError``.
    public convenience init(
        inherited descriptor: Int32, on loop: RunLoop, modes: RunLoop.Modes = .common, options: Options = Options(),
        handler: @escaping AcceptHandler, file: StaticString = #fileID, line: UInt32 = #line
    ) throws {
        try ListeningSocket.check(descriptor)
        try self.init(
            inherited: descriptor, path: nil, on: loop, modes: modes, options: options, handler: handler,
            file: file, line: line)
    }

    private init(
        inherited descriptor: Int32, path: String?, on loop: RunLoop, modes: RunLoop.Modes, options: Options,
        handler: @escaping AcceptHandler, file: StaticString, line: UInt32
    ) throws {
        origin = RunLoop.Origin(file: file, line: line)
        fileDescriptor = descriptor
        self.path = path
        self.loop = loop
        self.modes = modes
        self.options = options
        self.handler = handler
        isTCP = Endpoint.local(of: descriptor).path == nil
        setNonBlocking(descriptor)
        reserve = open("/dev/null", O_RDONLY | O_CLOEXEC)
        let source = DescriptorSource(fileDescriptor: descriptor, events: .readable, origin: origin) { [self] _, _ in
            acceptSome()
        }
        source.name = "listener \(Endpoint.local(of: descriptor))"
        do {
            try loop.add(source, forMode: modes)
        } catch {
            Glibc.close(descriptor)
            if reserve >= 0 { Glibc.close(reserve) }
            throw error
        }
        self.source = source
    }

    /// Where it listens: with the port that the system chose.
    public var address: Endpoint { Endpoint.local(of: fileDescriptor) }

    /// Whether it still listens.
    public var isOpen: Bool { handler != nil }

    private func acceptSome() {
        for _ in 0..<options.budget {
            guard let handler else { return }
            var descriptor: Int32 = -1
            var reason: Int32 = 0
            let peer = Endpoint { address, length in
                descriptor = rlk_accept(fileDescriptor, address, &length)
                reason = errno
            }
            if descriptor >= 0 {
                accepted += 1
                if isTCP, options.hasNoDelay { setOption(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, 1) }
                handler(self, descriptor, peer)
                continue
            }
            switch reason {
            case EAGAIN: return
            // The peer has gone already, or a signal came: the next one may be there.
            case ECONNABORTED, EINTR, EPROTO, EPERM: continue
            case EMFILE, ENFILE, ENOBUFS, ENOMEM: return refuse(reason)
            default:
                errorHandler?(self, SystemError("accept a connection", errno: reason))
                return rest()
            }
        }
    }

    /// No descriptor is left. The one in reserve lets the connection at hand be taken and closed, so that its peer is
    /// not left waiting; then accepting pauses.
    private func refuse(_ reason: Int32) {
        if reserve >= 0 {
            Glibc.close(reserve)
            let descriptor = accept(fileDescriptor, nil, nil)
            if descriptor >= 0 {
                Glibc.close(descriptor)
                refused += 1
            }
        }
        reserve = open("/dev/null", O_RDONLY | O_CLOEXEC)
        rest()
        errorHandler?(self, SystemError("accept a connection", errno: reason))
    }

    private func rest() {
        guard let source, resumption == nil else { return }
        loop.remove(source, fromMode: modes)
        let timer = Timer(at: loop.now + options.pause, origin: origin) { [unowned self] _ in
            resumption = nil
            guard let source = self.source else { return }
            do { try loop.add(source, forMode: modes) } catch { close() }
        }
        timer.name = "pause of \(source.name!)"
        resumption = timer
        loop.add(timer, forMode: modes)
    }

    /// Stops accepting and closes the descriptor; a Unix socket's path is removed. Connections stay. Harmless when
    /// repeated.
    public func close() {
        guard let handler else { return }
        self.handler = nil
        source?.invalidate()
        resumption?.invalidate()
        (source, resumption) = (nil, nil)
        if let path { unlink(path) }
        Glibc.close(fileDescriptor)
        if reserve >= 0 { Glibc.close(reserve) }
        withExtendedLifetime((handler, errorHandler)) {}
        errorHandler = nil
    }
}
