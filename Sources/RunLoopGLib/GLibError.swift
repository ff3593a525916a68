#if Adapters
internal import Glibc

/// Why a main context of GLib cannot be part of a loop. A value and `Sendable`.
public enum GLibError: Error, Sendable, Hashable, CustomStringConvertible {
    /// Another thread owns the context: it iterates it, or has a loop with it.
    case ownedByAnotherThread
    /// The loop has a context already. Invalidate that one first, or attach the sources to it.
    case loopHasContext
    /// The loop is simulated, and GLib waits for real time.
    case isVirtual
    /// The system has no descriptor for it.
    case system(errno: Int32)

    public var description: String {
        switch self {
        case .ownedByAnotherThread: "another thread owns the main context; end its iterations first"
        case .loopHasContext: "the run loop has a main context of GLib already"
        case .isVirtual: "the run loop is simulated, and GLib waits for real time"
        case .system(let reason):
            "a descriptor for the main context: \(String(cString: strerror(reason))) (errno \(reason))"
        }
    }
}
#endif
