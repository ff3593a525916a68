internal import CShims
internal import Glibc
@_spi(Ports) public import RunLoopCore

/// Runs `body` on virtual time.
///
/// While `body` runs, the calling thread's loop is simulated: `RunLoop.current` is `simulation.loop`, and
/// `Timer.scheduledTimer`, `LoopThread` and everything else that uses the current loop live on the simulation's time,
/// which starts at zero. Only the loop's driver differs from the one in production. When `body` has returned, the
/// simulation's threads end, everything scheduled in their loops is invalidated and dropped, and the thread has its
/// former loop again.
///
/// ```swift
/// withSimulation { simulation in
///     var ticks = 0
///     Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: true) { _ in ticks += 1 }
///     simulation.advance(by: .seconds(86_400))
///     assert(ticks == 86_400)
/// }
/// ```
///
/// - Parameters:
///   - seed: the seed of all chance in the simulation, including ``/RunLoopKit/RunLoop/randomNumbers``. The same seed
///     gives the same run.
///   - isTraced: `true` to keep ``Simulation/trace``.
///   - wallTime: the time that the wall clock shows at the start; by default the beginning of the year 2001, which is
///     Foundation's reference date, so that dates are the same in every run.
///   - body: the code to run; called once, on this thread.
/// - Throws: the error of `body`; or ``Simulation/HostError`` if `body` does not throw, but the program of a host
///   that may not fail has, or a task continues forever after the end of its loop. A `body` that cannot throw is
///   stopped by a trap with the same words. In a test with the trait `.simulated` of RunLoopTesting the failure is an
///   issue of the test instead.
@available(*, noasync, message: "a simulation runs on one thread; call it from a synchronous function")
public func withSimulation<Result, Failure: Error>(
    seed: UInt64 = 0, traced isTraced: Bool = false,
    startingAt wallTime: RunLoop.WallTime = RunLoop.WallTime(secondsSince1970: 978_307_200),
    _ body: (Simulation) throws(Failure) -> Result
) throws(Failure) -> Result {
    let simulation = Simulation(seed: seed, isTraced: isTraced, startingAt: wallTime)
    var failures: [Simulation.HostError] = []
    let result = try withSimulation(simulation) { (simulation) throws(Failure) in
        let result = try body(simulation)
        failures = simulation.hostFailures
        return result
    }
    try report(failures + simulation.timeline.endlessTasks.withLock(\.self), as: Failure.self)
    return result
}

/// Reports hosts that have failed to the test or to the caller.
private func report<Failure: Error>(
    _ failures: [Simulation.HostError], as _: Failure.Type
) throws(Failure) {
    guard let first = failures.first else { return }
    if let witness = Witness.current { return witness.hostFailures.withLock { $0 += failures } }
    if let failure = first as? Failure { throw failure }
    fatalError("\(first); a host that may fail is added with mayFail: true")
}

/// Runs `body` on the virtual time of a simulation with `schedule`; the caller looks at ``Simulation/hostFailures``.
@_spi(Ports) public func withSimulation<Result, Failure: Error>(
    seed: UInt64, traced isTraced: Bool = false, schedule: Schedule, listener: (@Sendable (TracedEvent) -> Void)? = nil,
    look: Look? = nil, _ body: (Simulation) throws(Failure) -> Result
) throws(Failure) -> Result {
    let simulation = Simulation(
        seed: seed, isTraced: isTraced, startingAt: RunLoop.WallTime(secondsSince1970: 978_307_200),
        schedule: schedule, listener: listener, look: look)
    return try withSimulation(simulation) { simulation throws(Failure) in
        let result = try body(simulation)
        look?.end(simulation.timeline.lookAround)
        return result
    }
}

private func withSimulation<Result, Failure: Error>(
    _ simulation: Simulation, _ body: (Simulation) throws(Failure) -> Result
) throws(Failure) -> Result {
    let (timeline, world) = (simulation.timeline, simulation.world)
    let loop = RunLoop(driver: VirtualDriver(timeline: timeline, thread: timeline.main), world: world)
    let previous = RunLoop.install(loop)
    RunLoop.mainRemotes.set(loop.remote, in: world)
    timeline.add(loop)
    Witness.current?.latest.withLock { $0 = simulation }
    defer {
        timeline.close(from: timeline.main)
        loop.tearDown()
        // Deinits may have started other threads.
        timeline.close(from: timeline.main)
        simulation.letGoOfWorlds()
        timeline.joinThreads()
        RunLoop.install(previous)
    }
    return try body(simulation)
}

/// A simulation's virtual time, its threads and its past events.
///
/// Time stands still while code runs, except for the time that the code reports with ``spend(_:)``. When all loops
/// wait, time jumps to the next event. `Sendable`: every thread of the simulation may use it.
public final class Simulation: Sendable {
    let timeline: Timeline
    /// The world of the test's own threads.
    let world: VirtualWorld
    /// The wall clock of the test's own threads.
    @_spi(Ports) public let clock: MachineClock
    /// The worlds of hosts, in the order of their creation.
    private let otherWorlds = Locked<[VirtualWorld]>([])
    private let failures = Locked<[HostError]>([])
    /// Returns waits that are not a thread's own, such as a job's wait for a thread. Called while all threads rest.
    @_spi(Ports) public let furtherWaits = Locked<[@Sendable () -> [Wait]]>([])

    /// `true` if Swift's default executor and the main actor are parts of the simulation, which then also answers its
    /// threads' calls to the C library. Read on a thread of the simulation.
    @_spi(Ports) public var capturesExecutors: Bool { timeline.answersCalls.pointee != rlk_answers_nothing.rawValue }

    /// The number of threads for the jobs of the default executor; `nil` if one is enough, because none blocks.
    @_spi(Ports) public var executorWidth: Int? { width.withLock(\.self) }
    private let width = Locked<Int?>(nil)

    /// Has the simulation answer the calls of its threads from now on; `executorWidth` is the number of threads
    /// of the default executor, `nil` for no bound.
    @_spi(Ports) public func captureCalls(executorWidth: Int?) {
        width.withLock { $0 = executorWidth }
        let answers = timeline.schedule == nil ? rlk_answers_calls : rlk_answers_and_explores
        timeline.answersCalls.pointee = answers.rawValue
    }

    /// Returns the rest of a task that has taken many steps; `nil` if time has passed since as many steps before.
    @_spi(Ports) public func restAfterSteps() -> Duration? { timeline.restAfterSteps() }

    /// Records that a job of the calling thread waits for one of several threads. If its task is new, the caller has
    /// started it.
    @_spi(Ports) public func jobWaits(_ job: UnownedJob) {
        timeline.schedule?.lane(of: job, from: place.thread.number)
    }

    /// The seed of all chance in the simulation.
    public let seed: UInt64

    init(
        seed: UInt64, isTraced: Bool, startingAt wallTime: RunLoop.WallTime, schedule: Schedule? = nil,
        listener: (@Sendable (TracedEvent) -> Void)? = nil, look: Look? = nil
    ) {
        SimulatedCalls.installation
        self.seed = seed
        timeline = Timeline(
            isTraced: isTraced, recordsLoops: Witness.current != nil, schedule: schedule, listener: listener, look: look
        )
        clock = MachineClock(on: timeline, showing: wallTime)
        world = VirtualWorld(
            timeline: timeline, numbers: SeededNumbers(seed: seed), clock: clock, process: timeline.test)
        timeline.owner = self
    }

    /// The simulation of the calling thread, if any.
    @_spi(Ports) public static var ofThread: Simulation? {
        RunLoop.installed?.virtualDriver?.timeline.owner as? Simulation
    }

    /// The virtual time, which starts at zero.
    public var now: RunLoop.Instant { timeline.now }

    /// The simulated loop of the calling thread.
    ///
    /// - Precondition: the calling thread is one of the simulation's.
    public var loop: RunLoop { place.loop }

    var place: (loop: RunLoop, thread: Timeline.Thread) {
        guard let loop = RunLoop.installed, let driver = loop.virtualDriver, driver.timeline === timeline else {
            fatalError("this thread is not one of the simulation's; use it inside withSimulation")
        }
        return (loop, driver.thread)
    }

    // MARK: Moving the time

    /// Runs the loop in the default mode for `duration`. Afterwards everything that was due by then has happened in all
    /// threads.
    public func advance(by duration: Duration) {
        advance(to: now + duration)
    }

    /// Runs the loop in the default mode until `date`. If the loop has nothing left to do or is stopped, time still
    /// moves to the date, except when the loop's `LoopThread` is to end. Work that lasts beyond the date is finished,
    /// and items that had come due by its end are served once.
    public func advance(to date: RunLoop.Instant) {
        let (loop, thread) = place
        var othersRan = true
        while now < date || othersRan {
            let start = now
            let (isPoll, callouts) = (start >= date, loop.callouts)
            switch loop.run(in: .default, until: date) {
            case .starved: return
            // Only another thread can cause an event before the date.
            case .finished where now < date: if !sleep(loop, until: date) { return }
            // A run whose limit has come makes a single pass, which may leave more to do.
            case .timedOut where isPoll: settle(loop, at: date, since: callouts)
            case .finished, .timedOut, .stopped, .handledSource: break
            }
            if now < date && loop.isEnding { return }
            // Items that are due at the date in other threads are served too, and may give this thread more to do.
            if now >= date { othersRan = timeline.yield(thread) }
            // But work that lasts beyond the date is not waited for, because more of it may arrive meanwhile.
            if start > date && now > start { return }
        }
    }

    /// Makes passes until one of them finds nothing to do.
    private func settle(_ loop: RunLoop, at date: RunLoop.Instant, since callouts: Int) {
        var before = callouts
        while loop.callouts != before && now <= date {
            before = loop.callouts
            guard loop.poll() == .timedOut else { return }
        }
    }

    /// Sleeps until `date`, or until another thread wakes the loop.
    ///
    /// The loop runs in a private mode that serves nothing; sources that become ready meanwhile wait.
    ///
    /// - Returns: `true` if the loop was woken or the date has come; `false` if nothing can ever happen again.
    private func sleep(_ loop: RunLoop, until date: RunLoop.Instant) -> Bool {
        let waiting = CustomSource()
        let waker = Observer(activities: .afterWaiting) { _, _ in loop.stop() }
        loop.add(waiting, forMode: RunLoop.Modes(Timeline.asleep))
        loop.add(waker, forMode: RunLoop.Modes(Timeline.asleep))
        defer {
            waiting.invalidate()
            waker.invalidate()
        }
        return loop.run(in: Timeline.asleep, until: date) != .starved
    }

    /// Runs the loop in the default mode until no thread of the simulation has anything left to do.
    ///
    /// - Parameter limit: the virtual time that may pass; a day by default. Work that takes longer is finished, and
    ///   items that had come due by its end are served once.
    /// - Returns: the standing of the simulation at the end. With a repeating timer it is always
    ///   ``Standing/idle(until:next:)``.
    @discardableResult
    public func runUntilIdle(limit: Duration = .seconds(86_400)) -> Standing {
        let (loop, thread) = place
        let end = now + limit
        timeline.beginHorizon(thread, at: end)
        var isOver = false
        while !isOver {
            let isLate = now > end
            switch loop.run(in: .default) {
            case .starved: isOver = true
            case .finished: isOver = !sleep(loop, until: .distantFuture)
            case .stopped: isOver = isLate
            case .timedOut, .handledSource: break
            }
            isOver = isOver || loop.isEnding
        }
        timeline.endHorizon(thread)
        return standing
    }

    /// Spends `duration` at work: the calling thread's loop is blocked, as by a busy handler, while other threads
    /// continue.
    public func spend(_ duration: Duration) {
        let (loop, thread) = place
        loop.callTakesTime()
        timeline.work(thread, until: now + duration)
    }

    /// Lets the other threads do their present work, without moving time; the calling thread's loop does not run.
    public func yield() {
        _ = timeline.yield(place.thread)
    }

    /// Simulates a user's drag. At `start` a source of the default mode is handled, and its handler runs the loop
    /// nested in `mode` until `end`, as a user interface does while the finger is down.
    public func drag(
        from start: RunLoop.Instant, until end: RunLoop.Instant, in mode: RunLoop.Mode = .tracking
    ) {
        let loop = self.loop
        let touch = CustomSource { source in
            let keepAlive = CustomSource()
            loop.add(keepAlive, forMode: RunLoop.Modes(mode))
            loop.run(in: mode, until: end)
            keepAlive.invalidate()
            source.invalidate()
        }
        loop.add(touch, forMode: .default)
        loop.perform(at: start) { touch.signal() }
    }

    // MARK: The wall clock

    /// The time of the wall clock, which `RunLoop.wallTime` returns and by which wall timers fire. Setting it simulates
    /// a person or a time server: virtual time stays as it is, and wall timers are notified.
    ///
    /// Any thread of the simulation.
    public var wallTime: RunLoop.WallTime {
        get { clock.time }
        set { clock.time = newValue }
    }

    /// Simulates a sleep of the machine: the wall clock advances by `duration`, and virtual time stands still, as
    /// `CLOCK_MONOTONIC` does.
    public func sleepMachine(for duration: Duration) {
        clock.sleep(for: duration)
    }

    /// Makes the wall clock fast by `billionths`, or slow if they are negative: with 20,000 it gains 1.7 s a day.
    ///
    /// - Precondition: `billionths` is more than -1,000,000,000.
    public func setWallClockDrift(billionths: Int64) {
        clock.setDrift(billionths: billionths)
    }

    // MARK: Hosts

    /// Makes the clock of another machine, set to the time of the test's clock.
    @_spi(Ports) public func makeClock() -> MachineClock { MachineClock(on: timeline, showing: clock.time) }

    /// Makes a world for threads that live and die together: the threads of a host's process.
    ///
    /// - Parameters:
    ///   - name: the prefix of the names of its threads, which also, like the seed, decides the world's random numbers.
    ///   - life: the number of earlier worlds of this host.
    @_spi(Ports) public func makeWorld(
        named name: String, on machine: String, life: Int, clock: MachineClock,
        descriptors: any SimulatedDescriptors, surroundings: any SimulatedSurroundings
    ) -> any SimulatedWorld {
        let world = VirtualWorld(
            timeline: timeline, numbers: SeededNumbers(seed: seed, for: "\(name) \(life)"), clock: clock,
            process: Timeline.Process(on: machine, isTest: false), prefix: "\(name)/", descriptors: descriptors,
            surroundings: surroundings)
        otherWorlds.withLock { $0.append(world) }
        return world
    }

    /// Returns numbers that follow from the seed, for a part of the world that belongs to no thread.
    @_spi(Ports) public func randomNumbers(for part: String) -> RunLoop.RandomNumbers {
        let numbers = Locked(SeededNumbers(seed: seed, for: part))
        return RunLoop.RandomNumbers { numbers.withLock { $0.next() } }
    }

    /// Drops a world that ``makeWorld(named:on:life:clock:descriptors:surroundings:)`` has made and whose threads have
    /// ended. Any thread of the simulation.
    @_spi(Ports) public func letGo(of world: any SimulatedWorld) {
        let own = otherWorlds.withLock { worlds in
            worlds.firstIndex { $0 === world }.map { worlds.remove(at: $0) }
        }
        own?.letGo()
    }

    /// Gives the test's own threads simulated descriptors: the thread of `loop`, which is the caller's, and threads that
    /// are made later.
    @_spi(Ports) public func add(_ descriptors: any SimulatedDescriptors, for loop: RunLoop) {
        world.add(descriptors, for: loop)
    }

    /// Breaks the cycle between worlds and the objects that they hold.
    func letGoOfWorlds() {
        for world in otherWorlds.withLock(\.self) + [world] where !world.isKilled { world.letGo() }
        otherWorlds.withLock { $0.removeAll() }
    }

    /// Schedules an event at `date`, or as soon as the running thread rests. The event calls no user code.
    ///
    /// - Parameters:
    ///   - what: the event, for example `bytes arrive`.
    ///   - sender: the host that causes the event, if any.
    ///   - host: the host where the event happens.
    @_spi(Ports) public func schedule(
        at date: RunLoop.Instant, _ what: StaticString, from sender: String?, on host: String,
        _ action: @escaping () -> Void
    ) -> Appointment {
        timeline.schedule(at: date, what, from: sender, on: host, action)
    }

    // MARK: Past events

    /// The events so far, one line each, in order: the time, the thread, the mode, and the event. Every run gives the
    /// same bytes. Empty if the simulation is not traced.
    public var trace: [String] { timeline.state.withLock { $0.lines } }

    /// The acts and tasks that have left the simulation or have entered it from outside, one line each, in order, with
    /// the thread and the time.
    ///
    /// A task that returns to a loop was on Swift's default executor, on the default clock, or on a thread that is not
    /// the simulation's. The time of return depends on real time, which the simulation cannot see, so the run is not
    /// the same each time. A task stays inside if it is a task of a loop, or prefers a loop's executor, and sleeps on a
    /// loop's clock. With captured executors, every task started by a thread of the simulation stays inside, on any of
    /// Swift's clocks.
    ///
    /// A post by a thread outside is an escape as well, with its caller, except while the time is held. With captured
    /// executors, so are a thread's other acts that reach beyond the simulation: a block for Dispatch, a thread, a
    /// socket or a file of the C library. Each kind is reported once for a thread. A traced simulation has the same
    /// lines in its ``trace``.
    public var escapes: [String] { timeline.state.withLock { $0.escapes } }

    /// Notes that part of the calling thread's code is outside the simulation.
    @_spi(Ports) public func noteEscape(_ why: String) {
        timeline.noteEscape(to: place.thread) { _, _ in why }
    }

    /// Notes that the calling thread, which is outside the simulation, resumes a task of it.
    @_spi(Ports) public func noteDeparture(of job: UnownedJob) {
        timeline.noteTouch(of: timeline.main, "resumes \(job.task), which continues outside,")
    }

    /// Records an error thrown by the program of a host that may not fail.
    @_spi(Ports) public func noteFailure(of host: String, _ error: any Error) {
        failures.withLock { $0.append(HostError(host: host, instant: now, error: error)) }
    }

    /// The errors thrown by the programs of hosts, in order, except hosts that may fail. Any thread.
    public var hostFailures: [HostError] { failures.withLock(\.self) }

    /// Adds a line of your own to the trace and to the ``picture``.
    public func note(_ text: String) {
        let (loop, thread) = place
        timeline.writeLine(text, of: thread.name, in: loop)
        timeline.record(thread) { .note(text, thread: $0) }
    }

    /// Notes an event of a host, or of a connection between hosts.
    @_spi(Ports) public func note(_ text: String, of name: String) {
        timeline.note(text, of: name)
    }

    /// Notes a message from one host to another, or its loss.
    ///
    /// - Parameter bytes: the bytes of the message, evaluated only if the run is recorded.
    @_spi(Ports) public func note(
        _ message: HostMessage, from sender: String, to receiver: String,
        bytes: @autoclosure () -> some Collection<UInt8>
    ) {
        switch message {
        case .bytes(let count): timeline.writeLine("\(count) bytes from \(sender)", of: receiver)
        case .end: timeline.writeLine("end from \(sender)", of: receiver)
        case .lost(let count): timeline.writeLine("\(count) bytes to \(receiver) are lost", of: sender)
        }
        if case .bytes(let count) = message { timeline.schedule?.fold(count) }
        timeline.takeLook()
        let text = timeline.history.listener != nil ? messageText(of: bytes()) : nil
        timeline.history.record(.message(message, from: sender, text: text), in: receiver, at: now)
    }

    /// Makes the test's own threads belong to a host named `name`.
    @_spi(Ports) public func nameTest(_ name: String) {
        timeline.state.withLock { state in
            timeline.history.rename(timeline.main.lane, to: name, at: state.clock.now)
            timeline.test.machine = name
        }
    }
}

extension RunLoop {
    /// The driver, if the loop is simulated.
    var virtualDriver: VirtualDriver? { driver as? VirtualDriver }
}

/// A test that receives the events of its simulations.
@_spi(Ports) public final class Witness: Sendable {
    /// The witness of the calling task.
    @TaskLocal public static var current: Witness?

    /// The most recent simulation, which may have ended.
    public let latest = Locked<Simulation?>(nil)
    /// The failures of hosts that may not fail, in all simulations that have ended.
    public let hostFailures = Locked<[Simulation.HostError]>([])

    /// Creates a witness, which the test binds to ``current``.
    public init() {}
}

@_spi(Ports) extension Simulation: Opaque {}
