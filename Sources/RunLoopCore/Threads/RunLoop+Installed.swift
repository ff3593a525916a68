internal import Glibc

extension RunLoop {
    /// The loop of the calling thread, if it has one.
    package static var installed: RunLoop? { installedReference?.object }

    /// The same, by a reference that does not count: the thread keeps its loop.
    package static var installedReference: UnownedReference<RunLoop>? {
        pthread_getspecific(installedKey).map { UnownedReference(address: $0) }
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

    /// What the threads of a world mean by the main loop; `nil` in the real one, whose main thread has it.
    package static let mainRemotes = WorldLocal<Remote?> { _ in nil }

    /// What is done with every loop of a world's threads before it is set up: a simulation has them traced.
    package static let preparations = WorldLocal<@Sendable (RunLoop) -> Void> { _ in { _ in } }

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

extension RunLoop.Remote {
    /// The loop itself, if it is the calling thread's.
    package var installed: RunLoop? {
        guard let loop = RunLoop.installed, loop.mailbox === mailbox else { return nil }
        return loop
    }
}
