internal import CShims
@_spi(Ports) public import RunLoopKit

/// A group of loops on their own threads that share the work of a daemon, by default one per processor.
///
/// ```swift
/// let group = try LoopGroup()
/// let server = try Server(on: group) { connection, _ in
///     connection.receiveHandler = { connection, bytes in
///         connection.write(bytes)
///         return bytes.count
///     }
/// }
/// try server.listen(on: Endpoint("0.0.0.0", port: 7000))
/// daemon.add(server)
/// daemon.onStop(.exit) {
///     group.stop()
///     group.join()
/// }
/// ```
///
/// One loop, on its thread, serves a connection. The loops share only state that the program shares. They run until the
/// group is stopped, even with nothing to do; releasing the group does not end them. A group created in a simulation
/// runs in its virtual time, and behaves identically in every run. A group is `Sendable`.
public final class LoopGroup: Sendable {
    private let threads: [LoopThread]

    /// The loops, in the order of their set-up.
    public let loops: [RunLoop.Remote]

    /// The number of processors that the calling thread may run on; control-group quotas are ignored.
    public static var processorCount: Int { Int(rlk_processor_count()) }

    /// Starts the loops, and returns when all of them are set up and running.
    ///
    /// Blocks the calling thread meanwhile. If a set-up throws, or a thread cannot start, the started threads end
    /// before this initializer throws the error.
    ///
    /// - Parameters:
    ///   - count: the number of loops; at least one.
    ///   - name: the name of the threads, followed by their numbers.
    ///   - setUp: called on the thread of each loop, one after another, with the loop's number, starting at 0.
    /// - Throws: any error that `setUp` throws; `RunLoop.StartError` if the system has no descriptor or thread left.
    @available(
        *, noasync, message: "it blocks the calling thread; make the group before tasks begin, or on a LoopThread"
    )
    public init(
        count: Int = LoopGroup.processorCount, name: String = "loop",
        setUp: @escaping @Sendable (RunLoop, Int) throws -> Void = { _, _ in }
    ) throws {
        require(count > 0, "a group has one loop or more; LoopGroup.processorCount is how many processors there are")
        var threads: [LoopThread] = []
        do {
            for number in 0..<count {
                threads.append(
                    try LoopThread(starting: "\(name) \(number)", in: RunLoop.currentWorld) {
                        $0.add(CustomSource(), forMode: .common)
                    })
            }
            for (number, thread) in threads.enumerated() { try thread.remote.performAndWait { try setUp($0, number) } }
        } catch {
            for thread in threads { thread.stop() }
            for thread in threads { thread.join() }
            throw error
        }
        self.threads = threads
        loops = threads.map(\.remote)
    }

    // MARK: All loops

    /// Calls a block on every loop, in any mode. Returns at once. Any thread.
    ///
    /// - Parameters:
    ///   - block: called once on the thread of each loop that has not ended.
    ///   - completion: called once, when the block has run on every loop that has not ended, on the thread of one of
    ///     the loops or on the calling thread.
    public func performOnEach(
        _ block: @escaping @Sendable (RunLoop) -> Void, completion: @escaping @Sendable () -> Void = {}
    ) {
        performOnEach(inModes: .every, block, completion)
    }

    func performOnEach(
        inModes modes: RunLoop.Modes, _ block: @escaping @Sendable (RunLoop) -> Void,
        _ completion: @escaping @Sendable () -> Void
    ) {
        let count = AtLast(loops.count, completion)
        for loop in loops {
            let end = count.makeEnd()
            loop.perform(inModes: modes) { loop in
                block(loop)
                end.come()
            }
        }
    }

    // MARK: The end

    /// Asks all threads to end, as `LoopThread.stop()` does. Returns at once. Any thread.
    public func stop() {
        for thread in threads { thread.stop() }
    }

    /// Waits until all threads have ended and everything in their loops has been released. Blocks the calling thread,
    /// which may be any thread outside the group.
    @available(*, noasync, message: "it blocks the calling thread; await ended()")
    public func join() {
        for thread in threads { thread.join() }
    }

    /// Suspends the task until all threads have ended, each as by `LoopThread.ended()`. Any thread.
    public nonisolated(nonsending) func ended() async {
        for thread in threads { await thread.ended() }
    }
}
