public import RunLoopKit

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
    ///     for you to start, or with the error. The end of the loop lets it go uncalled.
    /// - Returns: the attempt. Keep it only if you may want to cancel it.
    @discardableResult
    public static func connect(
        to address: Endpoint, on loop: RunLoop, modes: RunLoop.Modes = .common, limits: Limits = Limits(),
        timeout: Duration = .seconds(30), receive: ReceiveHandler? = nil,
        completion: @escaping (Result<Connection, SystemError>) -> Void, file: StaticString = #fileID,
        line: UInt32 = #line
    ) -> ConnectionAttempt {
        let origin = RunLoop.Origin(file: file, line: line)
        return connect(to: address, on: loop, modes: modes, timeout: timeout, origin: origin, completion: completion) {
            Connection($0, on: loop, modes: modes, limits: limits, origin: origin, receive: receive)
        }
    }

    /// Connects, and calls `make` to make a connection of the socket.
    package static func connect(
        to address: Endpoint, on loop: RunLoop, modes: RunLoop.Modes, timeout: Duration, origin: RunLoop.Origin,
        completion: @escaping (Result<Connection, SystemError>) -> Void,
        make: @escaping (DescriptorStream) -> Connection
    ) -> ConnectionAttempt {
        let attempt = ConnectionAttempt(.address(address), on: loop, modes, timeout: timeout, retry: nil, origin) {
            switch $0 {
            case .success(let stream): completion(.success(make(stream)))
            case .failure(.addresses(let errors)): completion(.failure(errors[0]))
            case .failure(.lookup): preconditionFailure("an address is not looked up")
            }
        }
        attempt.begin()
        return attempt
    }

    /// Looks a host up and connects to it without blocking. Call it on the loop's thread.
    ///
    /// The addresses that ``HostResolver`` finds are tried as RFC 8305 says ("happy eyeballs"): IPv6 and IPv4 in turn,
    /// IPv6 first, and within a family in the resolver's order. When an address fails the next one is begun at once,
    /// and when it does not answer within 250 ms the next one is begun beside it. The first one that is connected wins;
    /// the sockets of the others are closed before the completion is called.
    ///
    /// - Parameters:
    ///   - host: a name, or an address in digits.
    ///   - port: the port.
    ///   - loop: the loop that serves the connection.
    ///   - modes: the modes in which it is served.
    ///   - limits: its limits.
    ///   - timeout: how long a try may take, the look-up and all addresses together, before it fails: as `timedOut`
    ///     while it looks the name up, with `ETIMEDOUT` afterwards; 30 s unless given.
    ///   - retry: whether and when to try again after a failure; `nil`, the default, for a single try. Each try looks
    ///     the name up anew, and between tries nothing is open. A text that cannot be a name is not tried again.
    ///   - receive: the connection's receive handler.
    ///   - completion: called once, on the loop's thread, and never before this call has returned: with a connection
    ///     for you to start, or with the error of the last try. The end of the loop lets it go uncalled.
    /// - Returns: the attempt. Keep it only if you may want to cancel it.
    /// - Precondition: the values of `retry` are what its properties say.
    @discardableResult
    public static func connect(
        host: String, port: UInt16, on loop: RunLoop, modes: RunLoop.Modes = .common, limits: Limits = Limits(),
        timeout: Duration = .seconds(30), retry: Retry? = nil, receive: ReceiveHandler? = nil,
        completion: @escaping (Result<Connection, ConnectError>) -> Void, file: StaticString = #fileID,
        line: UInt32 = #line
    ) -> ConnectionAttempt {
        let origin = RunLoop.Origin(file: file, line: line)
        return connect(
            host: host, port: port, on: loop, modes: modes, timeout: timeout, retry: retry, origin: origin,
            completion: completion
        ) { Connection($0, on: loop, modes: modes, limits: limits, origin: origin, receive: receive) }
    }

    /// Connects to a host, and calls `make` to make a connection of the socket that has won.
    package static func connect(
        host: String, port: UInt16, on loop: RunLoop, modes: RunLoop.Modes, timeout: Duration, retry: Retry?,
        origin: RunLoop.Origin, completion: @escaping (Result<Connection, ConnectError>) -> Void,
        make: @escaping (DescriptorStream) -> Connection
    ) -> ConnectionAttempt {
        let target = ConnectionAttempt.Target.host(host, port: port)
        let attempt = ConnectionAttempt(target, on: loop, modes, timeout: timeout, retry: retry, origin) {
            completion($0.map(make))
        }
        attempt.begin()
        return attempt
    }
}
