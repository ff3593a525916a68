internal import CLibevent
internal import CShims
internal import Glibc
@_spi(Ports) package import RunLoopCore

/// The real driver, which uses libevent only to wait.
///
/// libevent's callbacks only record which token is ready. The loop calls the handlers after libevent has returned, so a
/// handler may run the loop again, which libevent itself does not allow. There is one event for the deadline, one for
/// wake-ups from other threads, and one for each watched descriptor. The deadline is a timer descriptor, exact to the
/// nanosecond and set again only when the deadline moves. The timer descriptor and the event descriptor for wake-ups
/// report edges, so that nothing has to be read from them.
final class LibeventDriver: Driver {
    private let base: OpaquePointer
    private let timerDescriptor: Int32
    private let eventWaker: EventWaker
    private let forkCount = rlk_fork_count()

    private var timerEvent: UnsafeMutablePointer<event>?
    private var wakeEvent: UnsafeMutablePointer<event>?
    private var watches: [SourceToken: Watch] = [:]
    /// libevent's descriptor; `nil` before the first ``findDescriptor()``.
    private var descriptor: Int32?

    // References are not counted here: an event cost five counts. Callbacks access the driver and its watches by the
    // underscored call for the same reason; both live as long as their events.

    /// The setting of the timer descriptor; 0 if it is disarmed or has expired.
    private var armed: Int64 = 0
    /// The function that waits in libevent's place.
    private var pollFunction: RunLoop.PollFunction?
    /// The queue that callbacks fill during a wait. The waiting call keeps it.
    private var ready: Unmanaged<ReadyQueue>?

    // Reports are numbered. The wait before the present one has made the reports from `earlierReport` up to
    // `firstReport`. If the present wait finds one of their descriptors again, the report waits in `again`, at the place
    // of the earlier one. Memory of its own for the same reason as in `ReadyQueue`: with arrays an event took 93
    // instructions more, and now 16.
    private var earlierReport = 0
    private var firstReport = 0
    private var nextReport = 0
    private var again = UnsafeMutableBufferPointer<Report>(start: nil, count: 0)
    private var againCount = 0

    private typealias Report = (watch: Unmanaged<Watch>?, events: DescriptorEvents)

    init(waker: EventWaker) throws(RunLoop.StartError) {
        _ = Self.silenced
        let config = event_config_new()
        // No other thread uses this base: wake-ups use a descriptor of our own.
        event_config_set_flag(config, Int32(EVENT_BASE_FLAG_NOLOCK.rawValue))
        // No event has a timeout, so libevent need not know the time.
        event_config_set_flag(config, Int32(EVENT_BASE_FLAG_NO_CACHE_TIME.rawValue))
        // The environment could choose a method of waiting that does not support edges.
        event_config_set_flag(config, Int32(EVENT_BASE_FLAG_IGNORE_ENV.rawValue))
        event_config_require_features(config, Int32(EV_FEATURE_ET.rawValue))
        defer { event_config_free(config) }
        let descriptor = rlk_timerfd()
        guard descriptor >= 0 else { throw .last("make a descriptor for the loop's timer") }
        guard Self.hasRoom(beside: descriptor), let base = event_base_new_with_config(config) else {
            let error = RunLoop.StartError.last("make a descriptor for the loop to wait on")
            close(descriptor)
            throw error
        }
        self.base = base
        eventWaker = waker
        timerDescriptor = descriptor
        timerEvent = try add(timerDescriptor) { _, _, driver in
            Unmanaged<LibeventDriver>.fromOpaque(driver!).with { $0.armed = 0 }
        }
        wakeEvent = try add(waker.descriptor) { _, _, _ in }
    }

    deinit {
        again.deallocate()
        // In a child process the epoll instance is the parent's: deleting from it would end the parent's watches.
        guard !isForked else { return }
        for watch in watches.values { watch.end() }
        for event in [timerEvent, wakeEvent] where event != nil { event_free(event) }
        event_base_free(base)
        close(timerDescriptor)
    }

    /// Makes an event that reports each time one of the loop's own descriptors becomes readable.
    private func add(
        _ descriptor: Int32, _ callback: event_callback_fn
    ) throws(RunLoop.StartError) -> UnsafeMutablePointer<event>? {
        // Unretained: libevent keeps the pointer no longer than the event lives, and the driver lives as long.
        let driver = Unmanaged.passUnretained(self).toOpaque()
        let event = event_new(base, descriptor, Int16(EV_READ | EV_ET | EV_PERSIST), callback, driver)
        guard event_add(event, nil) == 0 else {
            let error = RunLoop.StartError.last("watch the loop's own descriptor")
            event_free(event)
            throw error
        }
        return event
    }

    /// Silences libevent, which would write its warnings to standard error. The errors that matter come back as typed
    /// errors, with one exception: without descriptors for signals libevent ends the process.
    private static let silenced: Void = {
        event_set_log_callback { _, _ in }
        event_set_fatal_callback { _ in endProcess(.last("make descriptors for libevent")) }
    }()

    /// Returns whether there are descriptors left for a base: one to wait on, and two for signals, which are not used.
    private static func hasRoom(beside descriptor: Int32) -> Bool {
        let room = (0..<3).map { _ in fcntl(descriptor, F_DUPFD_CLOEXEC, 0) }
        let reason = errno
        for copy in room where copy >= 0 { close(copy) }
        errno = reason
        return room.allSatisfy { $0 >= 0 }
    }

    private var isForked: Bool { forkCount != rlk_fork_count() }

    private func checkFork() {
        require(
            !isForked,
            "this run loop was made before a fork; in the child process make a new one, or call exec")
    }

    // MARK: Driver

    var now: RunLoop.Instant { MonotonicClock.now }

    var waker: any Waker { eventWaker }

    @inline(__always)
    func wait(until deadline: RunLoop.Instant, into ready: ReadyQueue) -> WaitOutcome {
        checkFork()
        var flags = EVLOOP_ONCE | EVLOOP_NO_EXIT_ON_EMPTY
        if deadline == .distantPast {
            flags |= EVLOOP_NONBLOCK
        } else {
            setTimer(to: deadline)
        }
        if pollFunction != nil {
            switch poll(mayWait: deadline != .distantPast) {
            case .ready: flags |= EVLOOP_NONBLOCK
            case .notReady: return .woke
            case .unserved: break
            }
        }
        self.ready = Unmanaged.passUnretained(ready)
        (earlierReport, firstReport) = (firstReport, nextReport)
        event_base_loop(base, flags)
        if againCount > 0 { repeatReports() }
        if nextReport &- firstReport > again.count { makeRoom() }
        self.ready = nil
        return .woke
    }

    // Descriptors are reported in the order in which they became ready. The system's order differs: it moves a reported
    // descriptor to the end of its queue at once, ahead of descriptors that become ready before this one is again. A
    // descriptor that became ready just after a wait would be last in the next one, miss the wait after that, and so
    // on. A few of 64 busy clients waited twice as long as the others for each answer (decision 121).

    /// Reports a descriptor: at once if it is new since the wait before, and otherwise after the new ones, in the order
    /// of that wait.
    @inline(__always)
    fileprivate func report(_ watch: Watch, _ events: DescriptorEvents) {
        let place = watch.latestReport &- earlierReport
        guard UInt(bitPattern: place) < UInt(bitPattern: again.count) else { return append(watch, events) }
        again[place] = (Unmanaged.passUnretained(watch), events)
        againCount &+= 1
    }

    @inline(__always)
    private func append(_ watch: Watch, _ events: DescriptorEvents) {
        watch.latestReport = nextReport
        nextReport &+= 1
        ready?.with { $0.append(watch.token, events) }
    }

    @inline(__always)
    private func repeatReports() {
        var (next, rest) = (again.baseAddress!, againCount)
        againCount = 0
        while rest > 0 {
            let (watch, events) = next.pointee
            if let watch {
                next.pointee.watch = nil
                watch.with { append($0, events) }
                rest &-= 1
            }
            next += 1
        }
    }

    @inline(never)
    private func makeRoom() {
        again.deallocate()
        again = .allocate(capacity: 2 * (nextReport &- firstReport))
        again.initialize(repeating: (nil, []))
    }

    /// Sets the timer descriptor, which also clears an expiry.
    private func setTimer(to deadline: RunLoop.Instant) {
        let nanoseconds = deadline == .distantFuture ? 0 : max(1, deadline.nanoseconds)
        guard nanoseconds != armed else { return }
        armed = nanoseconds
        require(
            rlk_timerfd_set(timerDescriptor, nanoseconds) == 0, "the loop's timer cannot be set (errno \(errno))")
    }

    // libevent does not expose its descriptor, but the system shows which one watches the timer.
    func findDescriptor() throws(RunLoop.GuestError) -> Int32 {
        checkFork()
        if let descriptor { return descriptor }
        let found = rlk_find_epoll(timerDescriptor)
        guard found >= 0 else { throw .notFound }
        descriptor = found
        return found
    }

    func setAlarm(to date: RunLoop.Instant) {
        checkFork()
        setTimer(to: date)
    }

    func setPollFunction(_ function: RunLoop.PollFunction?) throws(RunLoop.GuestError) {
        require(
            function == nil || pollFunction == nil,
            "a run loop has one poll function at a time; set it to nil before you set another")
        if function != nil { _ = try findDescriptor() }
        pollFunction = function
    }

    @inline(never)
    private func poll(mayWait: Bool) -> RunLoop.PollResult { pollFunction!(descriptor!, mayWait) }

    func watch(
        _ descriptor: Int32, for events: DescriptorEvents, token: SourceToken
    ) throws(DescriptorError) {
        checkFork()
        try DescriptorError.check(descriptor)
        let watch = Watch(driver: self, token: token)
        guard watch.begin(on: base, descriptor, events) else {
            throw errno == EPERM ? .notPollable(descriptor) : .system(descriptor, errno: errno)
        }
        watches[token] = watch
    }

    func watchWallClock(token: SourceToken) {
        checkFork()
        watches[token] = started { () throws(RunLoop.StartError) in
            let descriptor = rlk_clock_watch()
            guard descriptor >= 0 else { throw .last("make a descriptor to watch the wall clock") }
            let watch = Watch(driver: self, token: token, clock: descriptor)
            guard watch.begin(on: base, descriptor, .readable) else { throw .last("watch the wall clock") }
            return watch
        }
    }

    func unwatch(_ token: SourceToken) {
        let watch = watches.removeValue(forKey: token)
        if !isForked { watch?.end() }
    }
}

/// Wakes a driver with an event descriptor, which lives as long as any thread may still write to it.
package final class EventWaker: Waker {
    let descriptor: Int32

    package init() throws(RunLoop.StartError) {
        descriptor = rlk_eventfd()
        guard descriptor >= 0 else { throw .last("make a descriptor to wake the loop") }
    }

    deinit {
        close(descriptor)
    }

    package func wake() {
        var one: UInt64 = 1
        while write(descriptor, &one, 8) < 0 { prepareToWakeAgain() }
    }

    /// Makes a failed write possible again. A lost wake-up is lost for ever: the mailbox sends no other one.
    @inline(never)
    private func prepareToWakeAgain() {
        var count: UInt64 = 0
        switch errno {
        case EINTR: break
        // The counter, which the loop leaves alone, is full.
        case EAGAIN: _ = read(descriptor, &count, 8)
        default:
            fatalError(
                "the run loop cannot be woken, because other code has closed its descriptor (errno \(errno)); look for "
                    + "a descriptor that is closed twice")
        }
    }

    package var now: RunLoop.Instant { MonotonicClock.now }
}

/// The interest in one descriptor.
private final class Watch {
    /// The driver, which keeps its watches, and ends them in its deinit.
    private let driver: Unmanaged<LibeventDriver>
    let token: SourceToken
    /// The descriptor that watches the wall clock, which is read when it reports, and closed at the end.
    private let clock: Int32?
    private var event: UnsafeMutablePointer<event>?
    /// The number of the latest report.
    var latestReport = -1

    init(driver: LibeventDriver, token: SourceToken, clock: Int32? = nil) {
        self.driver = Unmanaged.passUnretained(driver)
        self.token = token
        self.clock = clock
    }

    func begin(on base: OpaquePointer, _ descriptor: Int32, _ events: DescriptorEvents) -> Bool {
        var flags = EV_PERSIST
        if events.contains(.readable) { flags |= EV_READ }
        if events.contains(.writable) { flags |= EV_WRITE }
        // Unretained: libevent keeps the pointer no longer than the event lives, and the driver keeps the watch as
        // long.
        event = event_new(
            base, descriptor, Int16(flags),
            { _, what, context in Unmanaged<Watch>.fromOpaque(context!).with { $0.note(what) } },
            Unmanaged.passUnretained(self).toOpaque())
        guard event_add(event, nil) == 0 else {
            let reason = errno
            end()
            errno = reason
            return false
        }
        return true
    }

    func end() {
        if let event { event_free(event) }
        event = nil
        if let clock { close(clock) }
    }

    @inline(__always)
    private func note(_ what: Int16) {
        var events: DescriptorEvents = []
        if Int32(what) & EV_READ != 0 { events.insert(.readable) }
        if Int32(what) & EV_WRITE != 0 { events.insert(.writable) }
        if let clock { rlk_clock_watch_read(clock) }
        driver.with { $0.report(self, events) }
    }
}

extension Unmanaged {
    /// Calls `body` with the object, which must be kept elsewhere.
    // Underscored, and not `UnownedReference`: the compiler does not inline that from another module, which cost 65
    // instructions a pass.
    @inline(__always)
    fileprivate func with<Result>(_ body: (Instance) -> Result) -> Result { _withUnsafeGuaranteedRef(body) }
}
