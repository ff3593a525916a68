internal import Glibc

extension RunLoop {
    /// The loop of the calling thread, if it has one.
    package static var installed: RunLoop? { installedReference?.takeUnretainedValue() }

    /// The same, by a reference that does not count: the thread keeps its loop.
    package static var installedReference: Unmanaged<RunLoop>? {
        pthread_getspecific(installedKey).map { .fromOpaque($0) }
    }

    /// Makes `loop` the calling thread's loop, until another is installed or the thread ends.
    ///
    /// - Returns: the loop that was installed before; it has not been torn down.
    @discardableResult
    package static func install(_ loop: RunLoop?) -> RunLoop? {
        let previous = pthread_getspecific(installedKey).map { Unmanaged<RunLoop>.fromOpaque($0).takeRetainedValue() }
        pthread_setspecific(installedKey, loop.map { UnsafeRawPointer(Unmanaged.passRetained($0).toOpaque()) })
        return previous
    }

    /// A driver for another thread, in the world of the calling thread's loop.
    package static func makePeerOfInstalled(named name: String, isService: Bool = false) -> (any PeerDriver)? {
        installed?.driver.makePeer(named: name, isService: isService)
    }

    /// Swift has no thread-local variables; a key of the C library also says when a thread ends, foreign ones included.
    private static let installedKey: pthread_key_t = {
        var key = pthread_key_t()
        let status = pthread_key_create(&key) { pointer in
            guard let pointer else { return }
            Unmanaged<RunLoop>.fromOpaque(pointer).takeRetainedValue().tearDown()
        }
        require(status == 0, "the process has no thread-specific key left for its run loops")
        return key
    }()
}
