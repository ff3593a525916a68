internal import CShims
internal import Glibc

extension RunLoop {
    /// The loop of the calling thread, if it has one.
    @_spi(Ports) public static var installed: RunLoop? { installedReference?.object }

    /// An unretained reference to ``installed``: the thread keeps its loop.
    package static var installedReference: UnownedReference<RunLoop>? {
        rlk_get_thread_object().map { UnownedReference(address: $0) }
    }

    /// Returns the loop of that number, which must be the calling thread's; `nil` if it has ended.
    @inline(__always)
    static func living(_ number: UInt64) -> UnownedReference<RunLoop>? {
        if let installedReference, installedReference.with({ $0.number == number }) { return installedReference }
        return livingLoops.withLock { loops in
            let loop = loops[number]
            loop?.with { $0.checkThread() }
            return loop
        }
    }

    private static let livingLoops = Locked<[UInt64: UnownedReference<RunLoop>]>([:])

    /// Adds the loop to the table of living loops, or removes it.
    func noteLiving(_ lives: Bool) {
        RunLoop.livingLoops.withLock { loops in
            assert((loops[number] == nil) == lives, "a loop begins or ends twice")
            loops[number] = lives ? UnownedReference(self) : nil
        }
    }

    /// Indicates whether the loop is the calling thread's.
    var isInstalled: Bool { RunLoop.installedReference == UnownedReference(self) }

    /// An unretained reference to ``installed`` if it can be used here: after a fork, a loop of the real world is the
    /// parent's.
    package static var usableReference: UnownedReference<RunLoop>? {
        guard let reference = installedReference, !reference.with({ $0.isForked }) else { return nil }
        return reference
    }

    /// Returns whether the loop has ended and its thread is gone, when a task begins to wait. Traps on another thread
    /// while the loop lives.
    @inline(__always)
    package func hasGone(_ what: @autoclosure () -> String) -> Bool {
        if isInstalled { return false }
        require(mailbox.isClosed, RunLoop.awaitedElsewhere(what()))
        return true
    }

    package static func awaitedElsewhere(_ what: String) -> String {
        "a task waits for \(what) on the loop's thread: in a task of the loop, or in one that prefers its executor"
    }

    /// Reports an object that was made for a loop and never added to any, to the calling thread's loop, if it has one.
    static func tellOfUnused(_ what: @autoclosure () -> String) {
        usableReference?.with { $0.emit(.ignored("\(what()) was released and had never been added to a loop")) }
    }

    /// Makes `loop` the calling thread's loop until another is installed or the thread ends.
    ///
    /// - Returns: the loop that was installed before. It has not been torn down.
    @discardableResult
    @_spi(Ports) public static func install(_ loop: RunLoop?) -> RunLoop? {
        // Unmanaged: the thread holds the loop by a pointer, which counts as a reference.
        let previous = rlk_get_thread_object().map { Unmanaged<RunLoop>.fromOpaque($0).takeRetainedValue() }
        let pointer = loop.map { Unmanaged.passRetained($0).toOpaque() }
        pthread_setspecific(installedKey, pointer)
        rlk_set_thread_object(pointer)
        rlk_begin_simulated(loop?.world.answersCalls)
        return previous
    }

    /// The main loop for the threads of a world; `nil` in the real world, whose main thread has the loop.
    @_spi(Ports) public static let mainRemotes = WorldLocal<Remote?> { _ in nil }

    /// A closure to call with every loop of a world's threads before its set-up: a simulation has them traced.
    @_spi(Ports) public static let preparations = WorldLocal<@Sendable (RunLoop) -> Void> { _ in { _ in } }

    /// The key of the C library that reports the end of a thread, even of one that this library has not started. Its
    /// value counts as a reference to the loop, which C cannot manage: so it is retained and released by hand.
    private static let installedKey: pthread_key_t = {
        var key = pthread_key_t()
        let status = pthread_key_create(&key) { pointer in
            guard let pointer else { return }
            rlk_set_thread_object(nil)
            rlk_begin_simulated(nil)
            Unmanaged<RunLoop>.fromOpaque(pointer).takeRetainedValue().tearDown()
        }
        if status != 0 { endProcess(StartError("make a thread-specific key for run loops", errno: status)) }
        return key
    }()
}

extension UnownedReference<RunLoop> {
    /// Returns the first fire date of a timer that is made now.
    package func date(after interval: Duration) -> RunLoop.Instant {
        with { $0.now } + (interval > .zero ? interval : Timer.usualInterval)
    }

    package func schedule(_ timer: Timer) {
        with { $0.add(timer, forMode: .default) }
    }
}

extension RunLoop.Remote {
    /// A Boolean value that indicates whether the loop is the calling thread's. Any thread; O(1).
    public var isCurrent: Bool { installedReference != nil }

    /// The loop, if it is the calling thread's. Any thread; O(1).
    @_spi(Ports) public var installed: RunLoop? { installedReference?.object }

    /// An unretained reference to the loop, if it is the calling thread's.
    @inline(__always)
    var installedReference: UnownedReference<RunLoop>? {
        guard let loop = RunLoop.installedReference, loop.with({ $0.mailbox === mailbox }) else { return nil }
        return loop
    }
}
