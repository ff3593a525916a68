public import RunLoopUnix

/// The answer to a lookup of a name. A value and `Sendable`.
public enum NetworkAnswer: Sendable, Hashable {
    /// Addresses in digits, in the order in which to try them.
    case addresses([String])
    /// A failure, with the words of the resolver.
    case failure(HostResolver.Failure.Kind, reason: String)
    /// Another answer, after a while.
    indirect case delayed(Duration, NetworkAnswer)
}
