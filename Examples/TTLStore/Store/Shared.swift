import Glibc

/// A value that several threads use, one at a time.
///
/// The lock is the C library's, because ThreadSanitizer does not see the hand-over of the standard library's `Mutex`.
final class Shared<Value>: @unchecked Sendable {
    // Unchecked: the value is accessed only under the lock, whose address does not change.
    private let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private var value: Value

    init(_ value: Value) {
        self.value = value
        pthread_mutex_init(lock, nil)
    }

    deinit {
        pthread_mutex_destroy(lock)
        lock.deallocate()
    }

    func withLock<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        return try body(&value)
    }
}
