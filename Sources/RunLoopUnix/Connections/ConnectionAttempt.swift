@_spi(Ports) public import RunLoopKit

/// An attempt to connect, with all its tries. Keep it only if you may want to cancel it. An attempt belongs to the
/// loop's thread and is not `Sendable`.
public final class ConnectionAttempt {
    /// A stream that is open, or the reason why there is none.
    @_spi(Ports) public typealias Outcome = Result<any ByteStream, Connection.ConnectError>

    /// The address or the name to connect to.
    @_spi(Ports) public enum Target {
        /// An address.
        case address(Endpoint)
        /// A name, whose addresses are found and tried, or an address in digits.
        case host(String, port: UInt16)
    }

    private let target: Target
    private let loop: RunLoop
    private let modes: RunLoop.Modes
    private let timeout: Duration
    private let retry: Connection.Retry?
    private let origin: RunLoop.Origin
    private var completion: ((Outcome) -> Void)?
    private var tries = 0
    private var totalDeadline = RunLoop.Instant.distantFuture
    // The pending operations. The loop keeps them, and they keep the attempt, so the end of the loop releases
    // everything.
    private weak var lookup: HostLookup?
    private weak var race: SocketRace?
    private var pause: DelayedCall?
    private static let pauseLabel = CallLabel("pause before connecting again")

    /// Starts connecting. The outcome is never reported before this call has returned.
    @_spi(Ports) public init(
        _ target: Target, on loop: RunLoop, _ modes: RunLoop.Modes, timeout: Duration, retry: Connection.Retry?,
        _ origin: RunLoop.Origin, _ completion: @escaping (Outcome) -> Void
    ) {
        (self.target, self.loop, self.modes, self.timeout) = (target, loop, modes, timeout)
        (self.retry, self.origin, self.completion) = (retry, origin, completion)
        retry?.check()
        if let total = retry?.totalTimeout { totalDeadline = loop.now + total }
        beginTry()
    }

    /// A Boolean value that indicates whether the attempt is still pending.
    public var isPending: Bool { completion != nil }

    /// Cancels the attempt: closes its sockets, and releases the completion without calling it. Has no effect once
    /// there is an outcome. Call it on the loop's thread.
    public func cancel() {
        let dropped = completion
        completion = nil
        lookup?.cancel()
        race?.cancel()
        pause?.cancel()
        withExtendedLifetime(dropped) {}
    }

    private func beginTry() {
        assert(completion != nil, "an attempt that has ended tries again")
        tries += 1
        let deadline = min(loop.now + timeout, totalDeadline)
        switch target {
        case .address(let address): connect(to: [address], until: deadline)
        case .host(let name, let port):
            let lookup = HostLookup(name, port, on: loop, modes, timeout: deadline - loop.now, origin) { [self] in
                switch $0 {
                case .success(let addresses) where addresses.isEmpty:
                    fail(.lookup(HostResolver.LookupError(.notFound, name: name, reason: "the name has no address")))
                case .success(let addresses): connect(to: SocketRace.order(addresses), until: deadline)
                case .failure(let failure): fail(.lookup(failure))
                }
            }
            self.lookup = lookup
        }
    }

    private func connect(to addresses: [Endpoint], until deadline: RunLoop.Instant) {
        let race = SocketRace(addresses, on: loop, modes, until: deadline, origin) { [self] result in
            if case .failure(let error) = result { fail(error) } else { finish(result) }
        }
        self.race = race
    }

    /// Ends a failed try. Another follows unless the policy forbids it or it would begin too late.
    private func fail(_ error: Connection.ConnectError) {
        guard let retry, retry.allows(tries, error) else { return finish(.failure(error)) }
        var random = loop.randomNumbers
        let next = loop.now + retry.delay(after: tries, random: .random(in: 0..<1, using: &random))
        guard next < totalDeadline else { return finish(.failure(error)) }
        RunLoop.sometimes("a connection was tried again")
        pause = loop.perform(at: next, inModes: modes, label: Self.pauseLabel, origin: origin) { [self] in beginTry() }
    }

    private func finish(_ outcome: Outcome) {
        let completion = completion
        self.completion = nil
        completion?(outcome)
    }
}

@available(*, unavailable, message: "an attempt belongs to its loop's thread")
extension ConnectionAttempt: Sendable {}
