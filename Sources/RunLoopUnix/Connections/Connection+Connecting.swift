internal import Glibc
public import RunLoopKit

/// An attempt to connect. Keep it only if you may want to cancel it. It belongs to the loop's thread and is not
/// `Sendable`.
public final class ConnectionAttempt {
    private var source: DescriptorSource?
    private var timer: Timer?
    private var descriptor: Int32
    private var completion: ((Result<Connection, SystemError>) -> Void)?

    fileprivate init(_ descriptor: Int32, _ completion: @escaping (Result<Connection, SystemError>) -> Void) {
        self.descriptor = descriptor
        self.completion = completion
    }

    /// Whether the outcome is still open.
    public var isPending: Bool { completion != nil }

    /// Gives up without calling anything. Harmless once there is an outcome. Call it on the loop's thread.
    public func cancel() {
        end()
        if descriptor >= 0 { close(descriptor) }
        descriptor = -1
    }

    private func end() {
        source?.invalidate()
        timer?.invalidate()
        (source, timer) = (nil, nil)
        let dropped = completion
        completion = nil
        withExtendedLifetime(dropped) {}
    }

    fileprivate func begin(
        on loop: RunLoop, _ modes: RunLoop.Modes, _ timeout: Duration, _ address: Endpoint,
        _ origin: RunLoop.Origin,
        make: @escaping (DescriptorStream) -> Connection
    ) {
        let source = DescriptorSource(fileDescriptor: descriptor, events: .writable, origin: origin) { [self] _, _ in
            var reason: Int32 = 0
            var length = socklen_t(MemoryLayout<Int32>.size)
            getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &reason, &length)
            finish(reason, address, make)
        }
        let timer = Timer(at: loop.now + timeout, origin: origin) { [self] _ in
            finish(ETIMEDOUT, address, make)
        }
        (source.name, timer.name) = ("connecting to \(address)", "timeout of connecting to \(address)")
        do {
            try loop.add(source, forMode: modes)
        } catch {
            return loop.perform(inModes: modes) { [self] in finish(EBADF, address, make) }
        }
        (self.source, self.timer) = (source, timer)
        loop.add(timer, forMode: modes)
    }

    private func finish(_ reason: Int32, _ address: Endpoint, _ make: (DescriptorStream) -> Connection) {
        guard let completion else { return }
        end()
        guard reason == 0 else {
            cancel()
            return completion(.failure(SystemError("connect to \(address)", errno: reason)))
        }
        let connection = make(DescriptorStream(descriptor))
        descriptor = -1
        completion(.success(connection))
    }
}

@available(*, unavailable, message: "an attempt belongs to its loop's thread")
extension ConnectionAttempt: Sendable {}

extension Connection {
    /// Connects to an address without blocking. Call it on the loop's thread.
    ///
    /// - Parameters:
    ///   - address: where to connect.
    ///   - loop: the loop that serves the connection.
    ///   - modes: the modes in which it is served.
    ///   - limits: its limits.
    ///   - timeout: how long connecting may take before it fails with `ETIMEDOUT`; 30 s unless given.
    ///   - receive: the connection's receive handler.
    ///   - completion: called once, on the loop's thread, and never before this call has returned: with a connection
    ///     for you to start, or with the error.
    /// - Returns: the attempt. Keep it only if you may want to cancel it.
    @discardableResult
    public static func connect(
        to address: Endpoint, on loop: RunLoop, modes: RunLoop.Modes = .common, limits: Limits = Limits(),
        timeout: Duration = .seconds(30), receive: @escaping ReceiveHandler,
        completion: @escaping (Result<Connection, SystemError>) -> Void, file: StaticString = #fileID,
        line: UInt32 = #line
    ) -> ConnectionAttempt {
        let origin = RunLoop.Origin(file: file, line: line)
        return connect(to: address, on: loop, modes: modes, timeout: timeout, origin: origin, completion: completion) {
            Connection(
                $0, on: loop, modes: modes, limits: limits, origin: origin, receive: receive)
        }
    }

    /// Connects, and calls `make` to make a connection of the socket.
    package static func connect(
        to address: Endpoint, on loop: RunLoop, modes: RunLoop.Modes, timeout: Duration, origin: RunLoop.Origin,
        completion: @escaping (Result<Connection, SystemError>) -> Void,
        make: @escaping (DescriptorStream) -> Connection
    ) -> ConnectionAttempt {
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        let descriptor = socket(address.family, kind, 0)
        let status = descriptor < 0 ? -1 : address.withSystemAddress { Glibc.connect(descriptor, $0, $1) }
        let reason = errno
        let attempt = ConnectionAttempt(descriptor, completion)
        guard descriptor >= 0, status == 0 || reason == EINPROGRESS else {
            loop.perform(inModes: modes) {
                guard attempt.isPending else { return }
                attempt.cancel()
                completion(.failure(SystemError("connect to \(address)", errno: reason)))
            }
            return attempt
        }
        attempt.begin(on: loop, modes, timeout, address, origin, make: make)
        return attempt
    }
}
