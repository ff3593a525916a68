#if Adapters
public import RunLoopKit

/// A reason why a loop cannot serve a GLib main context. A value and `Sendable`.
public enum GLibError: Error, Sendable, Hashable, CustomStringConvertible {
    /// Another thread owns the context: it iterates the context, or its loop serves it.
    case ownedByAnotherThread
    /// The loop already has a context. Invalidate that one first, or attach the sources to it.
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
