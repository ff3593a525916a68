#if Adapters
public import RunLoopKit

/// Why a main context of GLib cannot be part of a loop. A value and `Sendable`.
public enum GLibError: Error, Sendable, Hashable, CustomStringConvertible {
    /// Another thread owns the context: it iterates it, or has a loop with it.
    case ownedByAnotherThread
    /// The loop has a context already. Invalidate that one first, or attach the sources to it.
    case loopHasContext
    /// GLib cannot wait for the loop: it is simulated, recorded or replayed, or there is no `/proc`.
    case notPollable(RunLoop.GuestError)

    public var description: String {
        switch self {
        case .ownedByAnotherThread: "another thread owns the main context; end its iterations first"
        case .loopHasContext: "the run loop has a main context of GLib already"
        case .notPollable(let error): "\(error)"
        }
    }
}
#endif
