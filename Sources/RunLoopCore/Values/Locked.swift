internal import CShims
internal import Glibc

/// A value behind a lock.
///
/// The lock is the C library's, not the standard library's `Mutex`. A contended `Mutex` is handed over inside the
/// kernel, which ThreadSanitizer cannot see: it reported 35 false races in a run of the tests. Simulations use this
/// lock themselves, so none of them switches threads at it.
@_spi(Ports) public final class Locked<Value: ~Copyable>: @unchecked Sendable {
    // Unchecked, because only `withLock` accesses `value`. The lock needs an address that does not change.
    private let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    // The lock excludes the conflicts that exclusivity checks would find; the checks cost as much as taking the lock.
    @exclusivity(unchecked) private var value: Value

    /// Creates a lock with a value that is read and changed only under it.
    public init(_ value: consuming Value) {
        self.value = value
        pthread_mutex_init(lock, nil)
    }

    deinit {
        pthread_mutex_destroy(lock)
        lock.deallocate()
    }

    /// Calls `body` with the value, on one thread at a time. Do not call `withLock` from within `body`.
    public func withLock<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
        rlk_lock(lock)
        defer { rlk_unlock(lock) }
        return try body(&value)
    }
}
