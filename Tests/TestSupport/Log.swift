import Glibc

/// A log of events, in order. Any thread may write.
package final class Log<Entry: Sendable>: @unchecked Sendable {
    // Unchecked: the lock guards the list. A lock of pthreads, because ThreadSanitizer does not see a `Mutex`.
    private let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private var list: [Entry] = []

    package init() {
        pthread_mutex_init(lock, nil)
    }

    deinit {
        pthread_mutex_destroy(lock)
        lock.deallocate()
    }

    package var entries: [Entry] {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        return list
    }

    package func append(_ entry: Entry) {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        list.append(entry)
    }

    package func clear() {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        list = []
    }
}

/// Logs of words are called with each word.
extension Log<String> {
    /// All words in a line.
    package var text: String { entries.joined(separator: " ") }

    package func callAsFunction(_ word: String) {
        append(word)
    }
}
