/// The environment of a loop, real or simulated. Where the two differ, the loop asks its world.
///
/// A world of other drivers on real time may ask `RunLoop.realWorld` for everything but its seats.
@_spi(Ports) public protocol World: AnyObject, Sendable {
    /// Indicates whether the time is virtual. Then tolerance moves no fire, and results are exact.
    var isVirtual: Bool { get }

    /// Indicates whether runs of the world are repeated, so that code must ask the world for all input.
    var isRepeatable: Bool { get }

    /// Indicates whether this run repeats an earlier one, whose files it leaves alone.
    var isReplay: Bool { get }

    /// Returns a decision that depends on which thread came first: as the calling thread takes it, or as the repeated
    /// run took it.
    func decides(_ decision: Bool) -> Bool

    /// The time of the wall clock. Any thread.
    var wallTime: RunLoop.WallTime { get }

    /// Returns the instant at which the wall clock will show a time if it is not set; not in the future if it shows it
    /// already.
    func instant(of time: RunLoop.WallTime) -> RunLoop.Instant

    /// Creates a seat for one more thread with a loop.
    ///
    /// - Parameter isService: whether the thread only serves others, so that it is the last to learn that nothing can
    ///   happen any more.
    /// - Throws: the refusal of a descriptor that its loop needs: the thread's driver is made here.
    func makeSeat(named name: String, isService: Bool) throws(RunLoop.StartError) -> any Seat

    /// Creates a latch at which the calling thread waits until the thread of `waker`, perhaps in another world, opens
    /// it.
    func makeLatch(openedBy waker: any Waker) -> any Latch

    /// Keeps virtual time from advancing on behalf of a thread of this world; `nil` on real time.
    ///
    /// - Parameter what: the awaited event outside.
    func holdTime(for what: String) -> (any TimeHold)?

    /// The answers to the threads' calls to the C library for times and random numbers: an `rlk_answers` of the shims,
    /// followed by the number of steps that the world's tasks have taken; `nil` in the real world.
    var answersCalls: UnsafeMutablePointer<UInt32>? { get }

    /// The time of the system's monotonic clock when a loop's clock is at zero.
    var monotonicStart: Duration { get }

    /// Counts a mark, and whether it is met now; see ``RunLoop/sometimes(_:if:)``. The real world counts nothing.
    func meet(_ mark: String, _ isMet: Bool)

    /// Reports a task that continues forever after the end of its loop, and keeps it at rest. The real world does not.
    ///
    /// - Parameter driver: the driver of the loop.
    /// - Returns: whether the task is kept.
    func keeps(endless task: String, with driver: any Driver) -> Bool

    /// The values that each world has once. One object for the life of the world.
    var shared: SharedLocals { get }
}

@_spi(Ports) extension World {
    public var isRepeatable: Bool { isVirtual }
    public var isReplay: Bool { false }
    public func decides(_ decision: Bool) -> Bool { decision }
    public var answersCalls: UnsafeMutablePointer<UInt32>? { nil }
    public var monotonicStart: Duration { .zero }
    public func holdTime(for what: String) -> (any TimeHold)? { nil }
    public func meet(_ mark: String, _ isMet: Bool) {}
    public func keeps(endless task: String, with driver: any Driver) -> Bool { false }
}

/// Makes its creating thread wait until another thread opens it.
@_spi(Ports) public protocol Latch: Sendable {
    /// Lets the waiting thread pass, now or as soon as it waits. Any thread; harmless when repeated.
    func open()

    /// Waits until the latch is open. Called once, and again only after `false`.
    ///
    /// - Returns: `false` on virtual time, once, if nothing that would open the latch can happen any more.
    func wait() -> Bool
}

/// A thread's seat in a world: made on one thread, and handed to the thread that takes it.
@_spi(Ports) public protocol Seat: Sendable {
    /// The world of the seat.
    var world: any World { get }

    /// Wakes the driver, even before ``take()``.
    var waker: any Waker { get }

    /// Receives the new thread, for a world that waits for the thread's end. Called by the thread's maker, which joins
    /// the thread as well.
    func wasTaken(by thread: ThreadHandle)

    /// Returns the thread's driver once the thread may run. Called first, on the new thread.
    func take() -> any Driver

    /// Gives up the seat. Called last, on that thread, when everything in its loop has been released.
    func leave()

    /// Waits until ``leave()`` has been called. Called on another thread, which then joins the thread itself; where
    /// that is enough, the seat need not wait.
    func join()
}

/// A value that the threads of a world share, made when it is first used.
@_spi(Ports) public final class WorldLocal<Value: Sendable>: Sendable {
    private let make: @Sendable (any World) -> Value

    /// - Parameter make: called once for each world; it must not ask for a world's values itself.
    public init(_ make: @escaping @Sendable (any World) -> Value) {
        self.make = make
    }

    /// Returns the value of a world, which is made at the first call. Any thread.
    public subscript(world: any World) -> Value {
        world.shared.locals.withLock { locals in
            if let value: Value = locals.value(of: self) { return value }
            let value = make(world)
            _ = locals.set(value, of: self)
            return value
        }
    }

    /// Sets the value of a world. Any thread.
    public func set(_ value: Value, in world: any World) {
        let former = world.shared.locals.withLock { $0.set(value, of: self) }
        withExtendedLifetime(former) {}
    }
}

/// The ``WorldLocal`` values of a world.
@_spi(Ports) public final class SharedLocals: Sendable {
    fileprivate let locals = Locked(Locals())

    /// Creates an empty store, for a new world.
    public init() {}

    /// Releases the values, at the end of the world.
    public func removeAll() {
        var last = Locals()
        locals.withLock { swap(&$0, &last) }
    }
}
