/// The environment of a loop: the real world, or a simulated one. Where the two differ, the loop asks its world.
package protocol World: AnyObject, Sendable {
    /// Whether the time is virtual. If so, tolerance moves no fire, and results are exact.
    var isVirtual: Bool { get }

    /// Whether its runs are repeated: whoever asks for anything else than the world does not get the same again.
    var isRepeatable: Bool { get }

    /// Whether this is such a repetition, which leaves the files of the run before alone.
    var isReplay: Bool { get }

    /// A decision of the calling thread that depends on which thread came first, as this run takes it, or as the run that is
    /// repeated took it.
    func decides(_ decision: Bool) -> Bool

    /// The time that the clock on the wall shows.
    var wallTime: RunLoop.WallTime { get }

    /// When that clock will show a time, if nobody sets it; not in the future if it shows it already.
    func instant(of time: RunLoop.WallTime) -> RunLoop.Instant

    /// A seat for one more thread with a loop.
    ///
    /// - Parameter isService: whether the thread only serves others, so that it is the last to learn that nothing can
    ///   happen any more.
    /// - Throws: the refusal of a descriptor that its loop needs: the thread's driver is made here.
    func makeSeat(named name: String, isService: Bool) throws(RunLoop.StartError) -> any Seat

    /// A latch at which the calling thread waits until the thread of that waker opens it. That thread may be in another
    /// world.
    func makeLatch(openedBy waker: any Waker) -> any Latch

    /// Keeps virtual time where it is, for a thread of this world; `nil` on real time.
    ///
    /// - Parameter what: the awaited event outside.
    func holdTime(for what: String) -> (any TimeHold)?

    /// How the world answers its threads' calls to the C library for times and random numbers: an `rlk_answers` of the
    /// shims, and behind it the number of steps that its tasks have taken; `nil` in the real one.
    var answersCalls: UnsafeMutablePointer<UInt32>? { get }

    /// The time of the system's monotonic clock when a loop's clock is at zero.
    var monotonicStart: Duration { get }

    /// Counts a mark, and whether it is met now; see ``RunLoop/sometimes(_:if:)``. The real world counts nothing.
    func meet(_ mark: String, _ isMet: Bool)

    /// Whether the world keeps a task at rest that continues forever after the end of its loop, which has this driver, and
    /// reports it. The real world does not.
    func keeps(endless task: String, with driver: any Driver) -> Bool

    /// The values shared by the threads of this world.
    var shared: SharedLocals { get }
}

extension World {
    package var isRepeatable: Bool { isVirtual }
    package var isReplay: Bool { false }
    package func decides(_ decision: Bool) -> Bool { decision }
    package var answersCalls: UnsafeMutablePointer<UInt32>? { nil }
    package var monotonicStart: Duration { .zero }
    package func holdTime(for what: String) -> (any TimeHold)? { nil }
    package func meet(_ mark: String, _ isMet: Bool) {}
    package func keeps(endless task: String, with driver: any Driver) -> Bool { false }
}

/// Makes the thread that made it wait until another thread opens it.
package protocol Latch: Sendable {
    /// Lets the thread pass, now or as soon as it waits. Any thread; harmless when repeated.
    func open()

    /// Waits until the latch is open.
    ///
    /// - Returns: `false` on virtual time, once, if nothing that would open it can ever happen any more.
    func wait() -> Bool
}

/// A thread's seat in a world: made on one thread, and handed to the thread that takes it.
package protocol Seat: Sendable {
    var world: any World { get }

    /// Wakes the driver, even before ``take()``.
    var waker: any Waker { get }

    /// Called when the thread has been made, by its maker.
    func wasTaken(by thread: ThreadHandle)

    /// Called first, on the new thread. Returns its driver once the thread may run.
    func take() -> any Driver

    /// Called last, on that thread, when everything in its loop has been released.
    func leave()

    /// Waits, on another thread, until ``leave()`` has been called.
    func join()
}

/// A value that the threads of a world share, made when it is first asked for.
package final class WorldLocal<Value: Sendable>: Sendable {
    private let make: @Sendable (any World) -> Value

    /// - Parameter make: called once for each world; it must not ask for a world's values itself.
    package init(_ make: @escaping @Sendable (any World) -> Value) {
        self.make = make
    }

    package subscript(world: any World) -> Value {
        world.shared.locals.withLock { locals in
            if let value: Value = locals.value(of: self) { return value }
            let value = make(world)
            _ = locals.set(value, of: self)
            return value
        }
    }

    package func set(_ value: Value, in world: any World) {
        let former = world.shared.locals.withLock { $0.set(value, of: self) }
        withExtendedLifetime(former) {}
    }
}

/// Where a world keeps its ``WorldLocal`` values.
package final class SharedLocals: Sendable {
    fileprivate let locals = Locked(Locals())

    package init() {}

    package func removeAll() {
        var last = Locals()
        locals.withLock { swap(&$0, &last) }
    }
}
