#if Adapters
internal import CGLib
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
    private let pollFunction: GPollFunc
    private let place: (file: StaticString, line: UInt32)
    private let polled = PollSet()
    private var observer: Observer?
    /// Keeps the modes from being empty.
    private var source: CustomSource?
    private var loopSource: LoopSource?
    /// Kept, so that posting it allocates nothing.
    private var iteration: () -> Void = {}

    /// Whether the context is prepared, and has been neither checked nor iterated by GLib itself since.
    private var isPrepared = false
    private var isPosted = false
    /// Whether this object calls GLib's steps.
    private(set) var isIterating = false
    /// How deep the loop's runs in modes of the context are nested, beginning with the run in which this object was made.
    private var depth = 0
    /// The depth of the innermost run that is a pass in a run of GLib's own.
    private var depthOfGuest = Int.min

    private static let ofLoop = RunLoop.Local<GLibContext?> { _ in nil }

    /// Adds a main context to a loop, of whose thread it becomes the property. On the loop's thread.
    ///
    /// - Parameters:
    ///   - context: the `GMainContext`; GLib's default one if it is `nil`.
    ///   - loop: the loop, which has one context at a time, and is nobody's guest meanwhile.
    ///   - modes: the modes in which the context is served; the common modes unless given.
    ///   - file: the place for reports, with `line`.
    /// - Throws: ``GLibError`` if another thread owns the context, if the loop has one already, or if it is simulated,
    ///   recorded or replayed.
    /// - Precondition: there is a mode.
    public init(
        _ context: OpaquePointer? = nil, on loop: RunLoop, inModes modes: RunLoop.Modes = .common,
        file: StaticString = #fileID, line: UInt32 = #line
    ) throws(GLibError) {
        precondition(!modes.isEmpty, "a main context is served in some mode; give at least one")
        guard loop[Self.ofLoop] == nil else { throw .loopHasContext }
        guard let context = context ?? g_main_context_default() else { throw .ownedByAnotherThread }
        guard g_main_context_acquire(context) != 0 else { throw .ownedByAnotherThread }
        (self.loop, self.modes, place) = (loop, modes, (file, line))
        self.context = g_main_context_ref(context)
        pollFunction = g_main_context_get_poll_func(context)
        do {
            loopSource = try LoopSource(self, loop, in: context)
            try loop.setPollFunction { [unowned self] in poll($0, $1) }
        } catch {
            loopSource = nil
            g_main_context_release(context)
            g_main_context_unref(context)
            throw .notPollable(error)
        }
        loop[Self.ofLoop] = self

        iteration = { [unowned self] in iterate() }
        let observer = Observer(
            activities: [.entry, .beforeWaiting, .exit], order: .max, handler: { [unowned self] in observe($1) },
            file: file, line: line)
        let source = CustomSource(handler: { _ in }, file: file, line: line)
        (observer.name, source.name) = ("GLib", "GLib")
        (self.observer, self.source) = (observer, source)
        loop.add(observer, forMode: modes)
        loop.add(source, forMode: modes)
        // The loop's end invalidates its items.
        source.invalidationHandler = { [self] in invalidate() }
    }

    /// Takes the context out of its loop, and gives it back: any thread may own it from now on. Harmless on an invalid one.
    /// On the loop's thread.
    public func invalidate() {
        guard isValid else { return }
        isValid = false
        loop[Self.ofLoop] = nil
        let items = (observer, source)
        (observer, source, loopSource) = (nil, nil, nil)
        items.0?.invalidate()
        items.1?.invalidate()
        // There is one to take away, so that nothing is thrown.
        try! loop.setPollFunction(nil)
        g_main_context_release(context)
        g_main_context_unref(context)
    }

    // MARK: In a pass

    /// Whether the innermost run is the loop's own.
    private var isServing: Bool { depth != depthOfGuest }

    private func observe(_ activity: RunLoop.Activity) {
        switch activity {
        case .entry: depth += 1
        case .exit: depth -= 1
        default: if isServing { prepare() }
        }
    }

    /// Asks GLib for its descriptors, and how long it may sleep.
    private func prepare() {
        isIterating = true
        polled.prepare(context)
        isIterating = false
        isPrepared = isValid
        if polled.timeout == 0 { post() }
    }

    private func poll(_ descriptor: Int32, _ mayWait: Bool) -> RunLoop.PollResult {
        guard isServing, let source, let mode = loop.currentMode, loop.contains(source, inMode: RunLoop.Modes(mode))
        else {
            return .unserved
        }
        // A loop that has something to do in each pass does not come to a sleep.
        if !isPrepared { prepare() }
        let ready = polled.poll(pollFunction, mayWait: mayWait)
        let isLoopReady = polled.isReady(descriptor)
        // Its time has come if nothing is ready.
        if ready > (isLoopReady ? 1 : 0) || mayWait && ready == 0 { post() }
        isPrepared = isPosted
        return isLoopReady ? .ready : .notReady
    }

    /// Has the pass dispatch the context. In a block and not in a handler, because a handler is not called again while it is
    /// on the stack, and callbacks of GLib may run the loop.
    private func post() {
        guard isValid, !isPosted else { return }
        isPosted = true
        loop.perform(inModes: modes, iteration, file: place.file, line: place.line)
    }

    /// Dispatches the ready sources, unless GLib has iterated by itself since they were found. Then the next pass finds those
    /// that are ready now.
    private func iterate() {
        isPosted = false
        guard isPrepared, isServing else { return }
        isPrepared = false
        isIterating = true
        let hasReady = polled.check(context)
        isIterating = false
        // The functions of sources may invalidate it, in the check as well as in the dispatch.
        if hasReady && isValid { withExtendedLifetime(self) { g_main_context_dispatch(context) } }
    }

    // MARK: In a run of GLib's own

    /// The mode of the innermost run, in whose handler GLib runs.
    var mode: RunLoop.Mode { loop.currentMode ?? .default }

    /// Called when the context is prepared; returns whether GLib itself prepares it.
    func willIterateByItself() -> Bool {
        if !isIterating { isPrepared = false }
        return !isIterating
    }

    func makePass(of guest: RunLoop.Guest) {
        guard let source else { return }
        isPrepared = false
        let (mode, outer) = (mode, depthOfGuest)
        depthOfGuest = loop.contains(source, inMode: RunLoop.Modes(mode)) ? depth + 1 : .min
        defer { depthOfGuest = outer }
        // The stop is for the run in whose handler GLib runs. It continues when GLib's is over.
        if guest.run(in: mode) == .stopped, loop.currentMode != nil { loop.stop() }
    }
}

extension GLibContext: Opaque {}

@available(*, unavailable, message: "a main context belongs to its loop's thread")
extension GLibContext: Sendable {}
#else
public import RunLoopKit

@available(*, unavailable, message: "RunLoopGLib needs the trait Adapters: .package(…, traits: [\"Adapters\"])")
public final class GLibContext {
    public init(_ context: OpaquePointer? = nil, on loop: RunLoop, inModes modes: RunLoop.Modes = .common) throws {}
}
#endif
