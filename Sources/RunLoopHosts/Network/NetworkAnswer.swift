public import RunLoopUnix

/// The answer to a lookup of a name. A `Sendable` value.
public enum NetworkAnswer: Sendable, Hashable {
    /// Addresses in digits, in the order in which to try them.
    case addresses([String])
    /// A failure, with the resolver's words.
    case failure(HostResolver.LookupError.Kind, reason: String)
    /// Another answer, after a delay.
    indirect case delayed(Duration, NetworkAnswer)
}
