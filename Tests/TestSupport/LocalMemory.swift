import Glibc

/// Thread-local memory whose destructor takes 50 ms.
package enum LocalMemory {
    // Created once, and kept: the system has 1,024 keys.
    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        pthread_key_create(&key) { pointer in
            usleep(50_000)
            Unmanaged<Counter>.fromOpaque(pointer!).takeRetainedValue().add()
        }
        return key
    }()

    /// Gives the calling thread such memory.
    ///
    /// - Parameter released: the number of destructors that have returned.
    package static func make(countedBy released: Counter) {
        pthread_setspecific(key, Unmanaged.passRetained(released).toOpaque())
    }
}
