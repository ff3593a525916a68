#if Adapters
internal import CGLib
internal import Glibc
internal import RunLoopCore
public import RunLoopKit

/// A main context of GLib as an item of a loop, in modes: the loop sleeps for both, and neither starves.
///
/// The sources of the context are prepared before the loop sleeps, their descriptors and their time-out end its sleep, and
/// those that are ready are dispatched in the pass, in the order of their priorities. A source that is always ready has its
/// turns among the loop's items. In a mode that the context is not in, GLib rests.
///
/// ```swift
/// let loop = RunLoop.current
/// let glib = try GLibContext(on: loop)
/// loop.run()
/// ```
///
/// Runs nest in both ways and to any depth. A callback of GLib may run the loop, in the tracking mode for example, and a
/// callback of the loop may call `g_main_loop_run`, or something of a toolkit that does: meanwhile it is the loop that waits,
/// in the mode of the innermost run, or in the default mode if there is none. Its timers, tasks and the main actor continue.
///
/// The loop keeps the context until it is invalidated, at the latest at the loop's end. It belongs to the loop's thread and
/// is not `Sendable`; other threads attach sources to the main context, as GLib allows. Follows GLib's page *The Main Event
/// Loop*.
public final class GLibContext {
    /// The modes in which the context is served.
    public let modes: RunLoop.Modes
    /// Whether the context is still served.
    public private(set) var isValid = true

    private let loop: RunLoop
    private let context: OpaquePointer
    private let formerPoll: GPollFunc?
    private var descriptors: GLibDescriptors
    /// Served while GLib waits in a run of its own, and otherwise in `modes`.
    private var source: DescriptorSource?
    private var timer: Timer?
    private var observer: Observer?
    /// Kept, so that posting it allocates nothing.
    private var iteration: () -> Void = {}

    /// The state of the context after its preparation, until it is checked. An iteration of GLib's own makes it void.
    private var prepared: Prepared?
    private var isPosted = false
    /// Whether the last pass has prepared the context.
    private var hasPrepared = false
    /// Whether GLib waits in a run of its own.
    private var state = State.rests
    /// Whether the descriptor has called, and how often in a row it did so in vain.
    private var isDescriptorReady = false
    private var vainCalls = 0

    private struct Prepared {
        let priority: Int32
        let count: Int32
    }

    private enum State {
        case rests
        case waits
    }

    /// The contexts of loops, by which GLib's function for waiting finds them.
    fileprivate static let ofLoop = RunLoop.Local<GLibContext?> { _ in nil }

    /// Adds a main context to a loop, of whose thread it becomes the property. On the loop's thread.
    ///
    /// - Parameters:
    ///   - context: the `GMainContext`; GLib's default one if it is `nil`.
    ///   - loop: the loop, which has one context at a time.
    ///   - modes: the modes in which the context is served; the common modes unless given.
    ///   - file: the place for reports, with `line`.
    /// - Throws: ``GLibError`` if another thread owns the context, if the loop has one already or is simulated, or if the
    ///   system has no descriptor.
    /// - Precondition: there is a mode.
    public init(
        _ context: OpaquePointer? = nil, on loop: RunLoop, inModes modes: RunLoop.Modes = .common,
        file: StaticString = #fileID, line: UInt32 = #line
    ) throws(GLibError) {
        precondition(!modes.isEmpty, "a main context is served in some mode; give at least one")
        guard !loop.isVirtual else { throw .isVirtual }
        guard loop[Self.ofLoop] == nil else { throw .loopHasContext }
        guard let context = context ?? g_main_context_default() else { throw .ownedByAnotherThread }
        descriptors = try GLibDescriptors()
        guard g_main_context_acquire(context) != 0 else { throw .ownedByAnotherThread }
        (self.loop, self.modes) = (loop, modes)
        self.context = g_main_context_ref(context)
        formerPoll = g_main_context_get_poll_func(context)
        g_main_context_set_poll_func(context) { waitInRunLoop($0, $1, $2) }
        loop[Self.ofLoop] = self

        iteration = { [unowned self] in iterate() }
        let observer = Observer(
            activities: [.beforeTimers, .beforeWaiting], order: .max, handler: { [unowned self] in observe($1) },
            file: file,
            line: line)
        let timer = Timer(
            fire: .distantFuture, interval: .seconds(1 << 30), repeats: true, block: { [unowned self] in timeCame($0) },
            file: file, line: line)
        (observer.name, timer.name) = ("GLib", "GLib")
        (self.observer, self.timer) = (observer, timer)
        loop.add(observer, forMode: modes)
        loop.add(timer, forMode: modes)
        watch(RunLoop.Origin(file: file, line: line))
        // The loop's end invalidates its items.
        timer.invalidationHandler = { [self] in invalidate() }
    }

    /// Takes the context out of its loop, and gives it back: any thread may own it from now on, and GLib waits as before.
    /// Harmless on an invalid one. On the loop's thread.
    public func invalidate() {
        guard isValid else { return }
        isValid = false
        loop[Self.ofLoop] = nil
        g_main_context_set_poll_func(context, formerPoll)
        let items = (observer, timer, source)
        (observer, timer, source) = (nil, nil, nil)
        items.0?.invalidate()
        items.1?.invalidate()
        items.2?.invalidate()
        descriptors.close()
        g_main_context_release(context)
        g_main_context_unref(context)
    }

    // MARK: In a pass

    private func watch(_ origin: RunLoop.Origin) {
        let source = DescriptorSource(fileDescriptor: descriptors.epoll, events: .readable, origin: origin) {
            [unowned self] _, _ in
            isDescriptorReady = true
            post()
        }
        source.name = "GLib"
        self.source = source
        // The descriptor is one of epoll, which can be waited for.
        try! loop.add(source, forMode: modes)
    }

    private func observe(_ activity: RunLoop.Activity) {
        guard state == .rests else { return }
        guard activity == .beforeTimers else {
            hasPrepared = true
            return prepare()
        }
        // A loop that has something to do in each pass does not come to a sleep.
        if !hasPrepared { prepare() }
        hasPrepared = false
    }

    /// Asks GLib how long it may sleep, and for which descriptors it waits.
    private func prepare() {
        var (priority, timeout) = (Int32(0), Int32(0))
        _ = g_main_context_prepare(context, &priority)
        let count = descriptors.query(context, priority, &timeout)
        prepared = Prepared(priority: priority, count: count)
        if timeout == 0 || !descriptors.watch(count) {
            post()
        } else {
            setTimer(timeout < 0 ? .distantFuture : loop.now + .milliseconds(Int64(timeout)))
        }
    }

    private func setTimer(_ date: RunLoop.Instant) {
        if timer?.fireDate != date { timer?.fireDate = date }
    }

    private func timeCame(_ timer: Timer) {
        timer.fireDate = .distantFuture
        post()
    }

    /// Has the pass make an iteration. In a block and not in a handler, because a handler is not called again while it is on
    /// the stack, and callbacks of GLib may run the loop.
    private func post() {
        guard state == .rests, !isPosted else { return }
        isPosted = true
        loop.perform(inModes: modes, iteration)
    }

    /// One iteration, if GLib has made none of its own since it was prepared. If it has, or if its descriptors have changed,
    /// the next pass prepares anew, and finds those sources ready that are ready now.
    private func iterate() {
        isPosted = false
        guard isValid, let prepared, state == .rests else { return }
        self.prepared = nil
        let ready = descriptors.poll(prepared.count)
        look(at: ready)
        guard descriptors.check(context, prepared.priority, prepared.count) else { return }
        // A callback may invalidate it.
        withExtendedLifetime(self) { g_main_context_dispatch(context) }
    }

    /// A descriptor that was closed while another process has it, too, is still watched and cannot be named any more.
    private func look(at ready: Int32) {
        vainCalls = isDescriptorReady && ready == 0 ? vainCalls + 1 : 0
        isDescriptorReady = false
        guard vainCalls > 1, let source else { return }
        vainCalls = 0
        self.source = nil
        source.invalidate()
        // Without a new descriptor GLib's time-outs continue, and the next pass tries again.
        if descriptors.renew() { watch(source.origin) }
    }

    // MARK: Runs of GLib's own

    /// Waits for GLib, by running the loop.
    ///
    /// - Parameter timeout: in milliseconds; negative for none.
    /// - Returns: how many descriptors are ready.
    fileprivate func wait(for fds: UnsafeMutablePointer<GPollFD>?, _ count: UInt32, _ timeout: Int32) -> Int32 {
        prepared = nil
        // The loop's thread is to end. GLib's run has to be quit as well, and until then the loop does not wait any more.
        if loop.isEnding { return formerPoll!(fds, count, timeout) }
        let mode = loop.currentMode ?? .default
        let ready = formerPoll!(fds, count, 0)
        if ready != 0 || timeout == 0 {
            // Programs that look for events and do not wait for any may do so between two statements: the loop has a turn
            // only if it would come late.
            if state == .rests, loop.now - loop.passTime > Self.longestTurn { _ = wait { loop.poll(in: mode) } }
            return ready
        }
        return wait { run(in: mode, until: fds, count, timeout) }
    }

    /// How long an iteration that does not wait may keep the loop from its turn.
    private static let longestTurn = Duration.milliseconds(1)

    private func wait<Result>(_ body: () -> Result) -> Result {
        let outer = state
        state = .waits
        defer { state = outer }
        return body()
    }

    private func run(
        in mode: RunLoop.Mode, until fds: UnsafeMutablePointer<GPollFD>?, _ count: UInt32, _ timeout: Int32
    ) -> Int32 {
        guard descriptors.watch(UnsafeBufferPointer(start: fds, count: Int(count))), let source else {
            return formerPoll!(fds, count, timeout)
        }
        let place = RunLoop.Modes(mode)
        let isGuest = !loop.contains(source, inMode: place)
        if isGuest { try! loop.add(source, forMode: place) }
        defer { if isGuest { loop.remove(source, fromMode: place) } }
        let limit: RunLoop.Instant = timeout < 0 ? .distantFuture : loop.now + .milliseconds(Int64(timeout))
        while true {
            let result = loop.run(in: mode, until: limit, returnAfterSourceHandled: true)
            let ready = formerPoll!(fds, count, 0)
            // The stop is for the run in whose handler GLib runs. It continues when GLib's is over.
            if result == .stopped { loop.stop() }
            if ready != 0 || result != .handledSource { return ready }
        }
    }
}

/// GLib's function for waiting, in a context that is part of a loop.
private func waitInRunLoop(_ fds: UnsafeMutablePointer<GPollFD>?, _ count: UInt32, _ timeout: Int32) -> Int32 {
    guard let context = RunLoop.current[GLibContext.ofLoop] else { return g_poll(fds, count, timeout) }
    return context.wait(for: fds, count, timeout)
}
#else
public import RunLoopKit

@available(*, unavailable, message: "RunLoopGLib needs the trait Adapters: .package(…, traits: [\"Adapters\"])")
public final class GLibContext {
    public init(_ context: OpaquePointer? = nil, on loop: RunLoop, inModes modes: RunLoop.Modes = .common) throws {}
}
#endif
