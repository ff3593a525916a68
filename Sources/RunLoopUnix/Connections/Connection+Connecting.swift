@_spi(Ports) public import RunLoopKit

extension Connection {
    /// Connects to an address without blocking. Call it on the loop's thread.
    ///
    /// - Parameters:
    ///   - address: where to connect.
    ///   - loop: the loop that serves the connection.
    ///   - modes: the modes in which the connection is served.
    ///   - limits: the limits of the connection.
    ///   - timeout: how long connecting may take before it fails with `ETIMEDOUT`; by default 30 s.
    ///   - receive: the connection's receive handler.
    ///   - completion: called once, on the loop's thread, and never before this call has returned: with a connection
    ///     for you to start, or with the error. If the loop ends first, the completion is released without a call.
    /// - Returns: the attempt. Keep it only if you may want to cancel it.
    @discardableResult
    public static func connect(
        to address: Endpoint, on loop: RunLoop, inModes modes: RunLoop.Modes = .common, limits: Limits = Limits(),
        timeout: Duration = .seconds(30), receive: ReceiveHandler? = nil,
        completion: @escaping (Result<Connection, SystemError>) -> Void, file: StaticString = #fileID,
        line: UInt32 = #line
    ) -> ConnectionAttempt {
        let origin = RunLoop.Origin(file: file, line: line)
        return connect(to: address, on: loop, inModes: modes, timeout: timeout, origin: origin, completion: completion)
        {
            Connection($0, on: loop, inModes: modes, limits: limits, origin: origin, receive: receive)
        }
    }

    /// Connects, and calls `make` to create a connection from the socket.
    @_spi(Ports) public static func connect(
        to address: Endpoint, on loop: RunLoop, inModes modes: RunLoop.Modes, timeout: Duration, origin: RunLoop.Origin,
        completion: @escaping (Result<Connection, SystemError>) -> Void,
        make: @escaping (any ByteStream) -> Connection
    ) -> ConnectionAttempt {
        ConnectionAttempt(.address(address), on: loop, modes, timeout: timeout, retry: nil, origin) {
            switch $0 {
            case .success(let stream): completion(.success(make(stream)))
            case .failure(.addresses(let errors)): completion(.failure(errors[0]))
            case .failure(.lookup): preconditionFailure("an address is not looked up")
            }
        }
    }

    /// Looks up a host and connects to it without blocking. Call it on the loop's thread.
    ///
    /// The addresses that ``HostResolver`` finds are tried as in RFC 8305 ("happy eyeballs"): IPv6 and IPv4 in turn,
    /// IPv6 first, and within a family in the resolver's order. When an attempt fails, the next begins at once; when it
    /// gets no answer within 250 ms, the next begins beside it. The first connected socket wins, and the others are
    /// closed before the completion is called.
    ///
    /// - Parameters:
    ///   - host: a name, or an address in digits.
    ///   - port: the port.
    ///   - loop: the loop that serves the connection.
    ///   - modes: the modes in which the connection is served.
    ///   - limits: the limits of the connection.
    ///   - timeout: how long a try may take, with the look-up and all addresses, before it fails: as `timedOut` during
    ///     the look-up, with `ETIMEDOUT` afterwards; by default 30 s.
    ///   - retry: whether and when to try again after a failure; `nil`, the default, means a single try. Each try looks
    ///     up the name anew, and no socket is open between tries. An invalid name is not tried again.
    ///   - receive: the connection's receive handler.
    ///   - completion: called once, on the loop's thread, and never before this call has returned: with a connection
    ///     for you to start, or with the error of the last try. If the loop ends first, the completion is released
    ///     without a call.
    /// - Returns: the attempt. Keep it only if you may want to cancel it.
    /// - Precondition: the values of `retry` are within the bounds that its properties state.
    @discardableResult
    public static func connect(
        host: String, port: UInt16, on loop: RunLoop, inModes modes: RunLoop.Modes = .common, limits: Limits = Limits(),
        timeout: Duration = .seconds(30), retry: Retry? = nil, receive: ReceiveHandler? = nil,
        completion: @escaping (Result<Connection, ConnectError>) -> Void, file: StaticString = #fileID,
        line: UInt32 = #line
    ) -> ConnectionAttempt {
        let origin = RunLoop.Origin(file: file, line: line)
        return connect(
            host: host, port: port, on: loop, inModes: modes, timeout: timeout, retry: retry, origin: origin,
            completion: completion
        ) { Connection($0, on: loop, inModes: modes, limits: limits, origin: origin, receive: receive) }
    }

    /// Connects to a host, and calls `make` to create a connection from the winning socket.
    @_spi(Ports) public static func connect(
        host: String, port: UInt16, on loop: RunLoop, inModes modes: RunLoop.Modes, timeout: Duration, retry: Retry?,
        origin: RunLoop.Origin, completion: @escaping (Result<Connection, ConnectError>) -> Void,
        make: @escaping (any ByteStream) -> Connection
    ) -> ConnectionAttempt {
        ConnectionAttempt(.host(host, port: port), on: loop, modes, timeout: timeout, retry: retry, origin) {
            completion($0.map(make))
        }
    }

    // MARK: For tasks

    /// Connects to an address, and returns a connection for tasks, which is not started. Otherwise behaves as the
    /// variant with a completion handler. Await it on the loop's thread.
    ///
    /// - Throws: ``SystemError``; `CancellationError` if the task is cancelled, which closes the socket;
    ///   `RunLoop.WaitError` if the loop has ended.
    public nonisolated(nonsending) static func connect(
        to address: Endpoint, on loop: RunLoop, inModes modes: RunLoop.Modes = .common, limits: Limits = Limits(),
        timeout: Duration = .seconds(30), file: StaticString = #fileID, line: UInt32 = #line
    ) async throws -> Connection {
        try await loop.awaitCompletion { (completion: @escaping (Result<Connection, SystemError>) -> Void) in
            let attempt = connect(
                to: address, on: loop, inModes: modes, limits: limits, timeout: timeout, completion: completion,
                file: file, line: line)
            // The loop keeps the attempt: the end of the loop releases the completion, which resumes the task.
            return { [weak attempt] in attempt?.cancel() }
        }.get()
    }

    /// Looks up a host, connects to it, and returns a connection for tasks, which is not started. Otherwise behaves as
    /// the variant with a completion handler. Await it on the loop's thread.
    ///
    /// - Throws: ``ConnectError``; `CancellationError` if the task is cancelled, which leaves nothing open;
    ///   `RunLoop.WaitError` if the loop has ended.
    public nonisolated(nonsending) static func connect(
        host: String, port: UInt16, on loop: RunLoop, inModes modes: RunLoop.Modes = .common, limits: Limits = Limits(),
        timeout: Duration = .seconds(30), retry: Retry? = nil, file: StaticString = #fileID, line: UInt32 = #line
    ) async throws -> Connection {
        try await loop.awaitCompletion { (completion: @escaping (Result<Connection, ConnectError>) -> Void) in
            let attempt = connect(
                host: host, port: port, on: loop, inModes: modes, limits: limits, timeout: timeout, retry: retry,
                completion: completion, file: file, line: line)
            // The loop keeps the attempt: the end of the loop releases the completion, which resumes the task.
            return { [weak attempt] in attempt?.cancel() }
        }.get()
    }
}

extension Connection {
    /// A failure to connect to a host; with ``Retry``, the failure of the last try. A value and `Sendable`.
    public enum ConnectError: Error, Sendable, Equatable, CustomStringConvertible {
        /// The look-up of the host's name failed, or found no address.
        case lookup(HostResolver.LookupError)
        /// All attempts to connect failed, with the errors of the tried addresses, at least one, in the order of
        /// failure. Attempts pending at the timeout come last, with `ETIMEDOUT`.
        case addresses([SystemError])

        /// The failure in one line, with the name or with each tried address.
        public var description: String {
            switch self {
            case .lookup(let failure): "look up \(failure)"
            case .addresses(let errors): errors.map(\.description).joined(separator: "; ")
            }
        }
    }
}
