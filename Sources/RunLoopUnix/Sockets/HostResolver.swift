internal import CShims
internal import Glibc
@_spi(Ports) public import RunLoopKit

/// A resolver that finds the addresses of a name on its own threads, so that a slow name server blocks neither a loop
/// nor the background timers.
///
/// At most eight names are looked up at a time. Further look-ups wait for a thread, but no longer than their timeouts.
/// Simultaneous requests for the same name share a look-up. Answers are not cached, because the system's resolver does
/// not report their lifetime. An address in digits needs no thread.
public enum HostResolver {
    /// A failure to find addresses.
    public struct LookupError: Error, Sendable, Equatable, CustomStringConvertible {
        /// The kinds of failure that a program can distinguish.
        public enum Kind: Sendable, Hashable {
            /// The name does not exist, or has no address.
            case notFound
            /// The name servers do not answer at present, or request another attempt; or the system has no thread or
            /// descriptor left.
            case unavailable
            /// There was no answer within the timeout.
            case timedOut
            /// The text is not a name: it is empty or has a zero byte.
            case invalidName
            /// The resolver failed in another way.
            case other
        }

        /// The kind of failure.
        public let kind: Kind
        /// The name that was looked up.
        public let name: String
        /// The reason as text, usually from the system's resolver, for example `Name or service not known`.
        public let reason: String

        /// Creates a failure.
        @_spi(Ports) public init(_ kind: Kind, name: String, reason: String) {
            (self.kind, self.name, self.reason) = (kind, name, reason)
        }

        public var description: String { "\(name): \(reason)" }
    }

    /// Finds the addresses of a name in the order in which to try them. A pending look-up keeps the loop's run from
    /// finishing.
    ///
    /// - Parameters:
    ///   - name: a name, or an address in digits.
    ///   - port: the port of the addresses.
    ///   - loop: the calling thread's loop.
    ///   - modes: the modes in which the completion may be called.
    ///   - timeout: how long the look-up may take, including the wait for a thread, before it fails as `timedOut`; by
    ///     default 30 s.
    ///   - completion: called once, on the loop's thread, and never before this call has returned. If the loop ends
    ///     first, it is released without a call.
    /// - Returns: the look-up. Keep it only if you may want to cancel it.
    @discardableResult
    public static func resolve(
        _ name: String, port: UInt16, on loop: RunLoop, inModes modes: RunLoop.Modes = .common,
        timeout: Duration = .seconds(30), completion: @escaping (Result<[Endpoint], LookupError>) -> Void,
        file: StaticString = #fileID, line: UInt32 = #line
    ) -> HostLookup {
        let origin = RunLoop.Origin(file: file, line: line)
        return HostLookup(name, port, on: loop, modes, timeout: timeout, origin, completion)
    }

    /// Finds the addresses of a name in the order in which to try them. Otherwise behaves as the variant with a
    /// completion. Await it on the loop's thread.
    ///
    /// - Throws: ``LookupError``; `CancellationError` if the task is cancelled, which has the effect of
    ///   ``HostLookup/cancel()``; `RunLoop.WaitError` if the loop has ended.
    public nonisolated(nonsending) static func resolve(
        _ name: String, port: UInt16, on loop: RunLoop, inModes modes: RunLoop.Modes = .common,
        timeout: Duration = .seconds(30), file: StaticString = #fileID, line: UInt32 = #line
    ) async throws -> [Endpoint] {
        try await loop.awaitCompletion { (completion: @escaping (Result<[Endpoint], LookupError>) -> Void) in
            let lookup = resolve(
                name, port: port, on: loop, inModes: modes, timeout: timeout, completion: completion, file: file,
                line: line)
            // The loop keeps the look-up until the loop ends.
            return { [weak lookup] in lookup?.cancel() }
        }.get()
    }

    /// A function that finds the addresses of a name on a thread that it may block.
    @_spi(Ports) public typealias Finder = @Sendable (String) -> Result<[Endpoint], LookupError>

    /// The finder of a world; `nil` for the system's resolver.
    @_spi(Ports) public static let finder = WorldLocal<Finder?> { _ in nil }

    /// The look-ups of a world; `nil` for ``SharedLookups``.
    @_spi(Ports) public static let lookups = WorldLocal<(any HostLookups)?> { _ in nil }

    /// The look-ups that a world has by itself: requests for the same name share a pending one, on the world's threads.
    /// Any thread.
    @_spi(Ports) public static let sharedLookups = WorldLocal<any HostLookups> { SharedLookups(in: $0) }

    /// Asks the system's resolver, which does not wait if `flags` accept only digits (`AI_NUMERICHOST`).
    static func find(_ name: String, flags: Int32 = AI_ADDRCONFIG) -> Result<[Endpoint], LookupError> {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_flags = AI_NUMERICSERV | flags
        var found: UnsafeMutablePointer<addrinfo>?
        let status = getaddrinfo(name, nil, &hints, &found)
        guard status == 0 else {
            let kind: LookupError.Kind =
                rlk_is_unknown_host(status) != 0 ? .notFound : status == EAI_AGAIN ? .unavailable : .other
            return .failure(LookupError(kind, name: name, reason: String(cString: gai_strerror(status))))
        }
        defer { freeaddrinfo(found) }
        var addresses: [Endpoint] = []
        var next = found
        while let info = next {
            addresses.append(Endpoint(info.pointee.ai_addr, info.pointee.ai_addrlen))
            next = info.pointee.ai_next
        }
        return .success(addresses)
    }
}
