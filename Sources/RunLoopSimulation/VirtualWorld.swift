@_spi(Ports) internal import RunLoopCore
internal import Synchronization

/// A world of threads on the timeline of a simulation.
final class VirtualWorld: SimulatedWorld {
    let timeline: Timeline
    let shared = SharedLocals()
    let process: Timeline.Process
    /// The prefix of the names of the world's threads.
    private let prefix: String
    let clock: MachineClock
    /// The numbers of the simulated system's own random generators.
    private let systemNumbers: Locked<SeededNumbers>
    private let system: Locked<(descriptors: (any SimulatedDescriptors)?, surroundings: (any SimulatedSurroundings)?)>

    /// The descriptors of the host, which the system does not know.
    var descriptors: (any SimulatedDescriptors)? { system.withLock(\.descriptors) }
    /// The surroundings of the host's process; `nil` for the test's own.
    var surroundings: (any SimulatedSurroundings)? { system.withLock(\.surroundings) }

    init(
        timeline: Timeline, numbers: SeededNumbers, clock: MachineClock, process: Timeline.Process, prefix: String = "",
        descriptors: (any SimulatedDescriptors)? = nil, surroundings: (any SimulatedSurroundings)? = nil
    ) {
        self.timeline = timeline
        self.process = process
        self.prefix = prefix
        system = Locked((descriptors, surroundings))
        self.clock = clock
        clock.begins(in: process)
        var other = numbers
        systemNumbers = Locked(SeededNumbers(seed: other.next()))
        let numbers = Locked(numbers)
        RunLoop.RandomNumbers.source.set({ numbers.withLock { $0.next() } }, in: self)
        RunLoop.preparations.set({ [unowned timeline] in timeline.add($0) }, in: self)
    }

    var isVirtual: Bool { true }

    var answersCalls: UnsafeMutablePointer<UInt32>? { timeline.answersCalls }
    var monotonicStart: Duration { MachineClock.monotonicStart }

    func meet(_ mark: String, _ isMet: Bool) {
        timeline.meet(mark, isMet)
    }

    func keeps(endless task: String, with driver: any Driver) -> Bool {
        guard let driver = driver as? VirtualDriver else { return false }
        timeline.note(endless: task, on: driver.thread)
        return true
    }

    func holdTime(for what: String) -> (any TimeHold)? {
        Simulation.Hold(RunLoop.installed?.virtualDriver?.thread ?? timeline.main, what, on: timeline)
    }

    func makeSeat(named name: String, isService: Bool) -> any Seat {
        VirtualSeat(
            owner: self, thread: timeline.makeThread(named: prefix + name, in: process, isService: isService))
    }

    func startMain(
        ended: @escaping @Sendable () -> Void, setUp: @escaping @Sendable (RunLoop) -> Void
    ) -> LoopThread {
        let thread = timeline.makeThread(named: String(prefix.dropLast()), in: process)
        thread.ended = { [self] in
            timeline.close(process)
            clock.ends(in: process)
            ended()
        }
        return started { () throws(RunLoop.StartError) in
            try LoopThread(name: "main", at: VirtualSeat(owner: self, thread: thread)) { [self] loop in
                RunLoop.mainRemotes.set(loop.remote, in: self)
                setUp(loop)
            }
        }
    }

    func makeLatch(openedBy waker: any Waker) -> any Latch {
        let opener = waker as? VirtualWaker
        let state = Timeline.LatchState(
            waiter: RunLoop.installed?.virtualDriver?.thread ?? timeline.main,
            opener: opener?.thread ?? timeline.main, isOutside: opener?.timeline !== timeline)
        return VirtualLatch(timeline: timeline, state: state)
    }

    /// Gives the world's threads simulated descriptors: new threads, and the thread of `loop`.
    func add(_ descriptors: any SimulatedDescriptors, for loop: RunLoop) {
        system.withLock { $0.descriptors = descriptors }
        loop.virtualDriver?.watch(descriptors)
    }

    /// Releases the objects that the world's threads have shared.
    func letGo() {
        shared.removeAll()
        system.withLock { $0 = (nil, nil) }
    }

    private let hasBeenKilled = Atomic(false)
    var isKilled: Bool { hasBeenKilled.load(ordering: .relaxed) }

    func kill() {
        hasBeenKilled.store(true, ordering: .relaxed)
        clock.ends(in: process)
        timeline.kill(process)
    }

    /// Fills memory as the system's random generators do.
    func fill(_ bytes: UnsafeMutableRawBufferPointer) {
        systemNumbers.withLock { numbers in
            for start in stride(from: 0, to: bytes.count, by: 8) {
                withUnsafeBytes(of: numbers.next()) { number in
                    for (index, byte) in number.prefix(bytes.count - start).enumerated() { bytes[start + index] = byte }
                }
            }
        }
    }

    // MARK: The clocks

    var wallTime: RunLoop.WallTime { clock.time }

    func instant(of time: RunLoop.WallTime) -> RunLoop.Instant { clock.instant(of: time) }
}

/// A latch at which a thread rests in virtual time.
private struct VirtualLatch: Latch {
    let timeline: Timeline
    let state: Timeline.LatchState

    func open() {
        timeline.open(state)
    }

    func wait() -> Bool { timeline.wait(at: state) != .starved }
}

private struct VirtualSeat: Seat {
    let owner: VirtualWorld
    let thread: Timeline.Thread

    var world: any World { owner }

    var waker: any Waker { VirtualWaker(timeline: owner.timeline, thread: thread) }

    func wasTaken(by handle: ThreadHandle) {
        owner.timeline.keep(handle, of: thread)
    }

    func take() -> any Driver {
        owner.timeline.awaitTurn(thread)
        return VirtualDriver(timeline: owner.timeline, thread: thread, descriptors: owner.descriptors)
    }

    func leave() {
        owner.timeline.leave(thread)
    }

    func join() {
        owner.timeline.join(thread)
    }
}
