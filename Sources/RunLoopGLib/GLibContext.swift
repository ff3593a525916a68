#if Adapters
internal import CGLib
@_spi(Ports) internal import RunLoopCore
public import RunLoopKit

/// A GLib main context that a loop serves in chosen modes. The loop sleeps for both, and neither starves.
///
/// The loop prepares the context's sources before it sleeps; their descriptors and time-out end its sleep. Ready
/// sources are dispatched in the pass, in the order of their priorities. A source that is always ready takes turns with
/// the loop's items. In other modes, GLib rests.
///
/// ```swift
/// let loop = RunLoop.current
/// let glib = try GLibContext(on: loop)
/// loop.run()
/// ```
///
/// Runs nest in both directions and to any depth. A callback of GLib may run the loop, for example in the tracking
/// mode. A callback of the loop may call `g_main_loop_run`, or a toolkit function that does. Meanwhile the loop does
/// the waiting, in the mode of the innermost run, or in the default mode if there is none; its timers, its tasks and
/// the main actor continue.
///
/// The loop keeps the context until you invalidate it or the loop ends. A context belongs to the loop's thread and is
/// not `Sendable`; other threads attach sources to the main context, as GLib allows. Follows GLib's page *The Main
/// Event Loop*.
public final class GLibContext {
    /// The modes in which the context is served.
    public let modes: RunLoop.Modes
    /// A Boolean value that indicates whether the loop still serves the context.
    public private(set) var isValid = true

    private let loop: RunLoop
    private let context: OpaquePointer
    private let pollFunction: GPollFunc
    private let place: (file: StaticString, line: UInt32)
    private let polled = PollSet()
    private var observer: Observer?
    /// The source that keeps the modes from being empty.
    private var source: CustomSource?
    private var loopSource: LoopSource?
    /// The block that iterates the context, stored so that posting it allocates nothing.
    private var iteration: () -> Void = {}

    /// True if the context is prepared, and GLib has neither checked nor iterated it since.
    private var isPrepared = false
    private var isPosted = false
    /// True while this object calls GLib's steps.
    private(set) var isIterating = false
    /// The nesting depth of the loop's runs in modes of the context, counted from the run in which this object was
    /// made.
    private var depth = 0
    /// The depth of the innermost run that is a pass within a run of GLib.
    private var depthOfGuest = Int.min

    private static let ofLoop = RunLoop.Local<GLibContext?> { _ in nil }

    /// Adds a main context to a loop, whose thread then owns it. Call it on the loop's thread.
    ///
    /// - Parameters:
    ///   - context: the `GMainContext`; `nil` for GLib's default context.
    ///   - loop: the loop, which has one context at a time, and cannot be another loop's guest meanwhile.
    ///   - modes: the modes in which the context is served; by default the common modes.
    ///   - file: the place for reports, with `line`.
    /// - Throws: ``GLibError`` if another thread owns the context, if the loop already has one, or if the loop is
    ///   simulated, recorded or replayed.
    /// - Precondition: `modes` is not empty.
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

    /// Removes the context from its loop and releases it, so that any thread may own it. Has no effect on an invalid
    /// context. Call it on the loop's thread.
    public func invalidate() {
        guard isValid else { return }
        isValid = false
        loop[Self.ofLoop] = nil
        let items = (observer, source)
        (observer, source, loopSource) = (nil, nil, nil)
        items.0?.invalidate()
        items.1?.invalidate()
        // Cannot throw, because a poll function is set.
        try! loop.setPollFunction(nil)
        g_main_context_release(context)
        g_main_context_unref(context)
    }

    // MARK: In a pass

    /// True if the innermost run is the loop's, not GLib's.
    private var isServing: Bool { depth != depthOfGuest }

    private func observe(_ activity: RunLoop.Activity) {
        switch activity {
        case .entry: depth += 1
        case .exit: depth -= 1
        default: if isServing { prepare() }
        }
    }

    /// Asks GLib for its descriptors and its time-out.
    private func prepare() {
        isIterating = true
        polled.prepare(context)
        isIterating = false
        isPrepared = isValid
        if polled.timeout == 0 { post() }
    }

    private func poll(_ descriptor: Int32, _ mayWait: Bool) -> RunLoop.PollResult {
        guard isServing, let source, let mode = loop.currentMode, loop.contains(source, forMode: RunLoop.Modes(mode))
        else {
            return .unserved
        }
        // A loop that is busy in every pass never sleeps, so nothing has prepared the context.
        if !isPrepared { prepare() }
        let ready = polled.poll(pollFunction, mayWait: mayWait)
        let isLoopReady = polled.isReady(descriptor)
        // If nothing is ready, GLib's time-out has expired.
        if ready > (isLoopReady ? 1 : 0) || mayWait && ready == 0 { post() }
        isPrepared = isPosted
        return isLoopReady ? .ready : .notReady
    }

    /// Posts a block that dispatches the context. A handler would not do: it is not called again while it is on the
    /// stack, and callbacks of GLib may run the loop.
    private func post() {
        guard isValid, !isPosted else { return }
        isPosted = true
        loop.perform(inModes: modes, iteration, file: place.file, line: place.line)
    }

    /// Dispatches the ready sources. If GLib has iterated by itself since they were found, the next pass looks again.
    private func iterate() {
        isPosted = false
        guard isPrepared, isServing else { return }
        isPrepared = false
        isIterating = true
        let hasReady = polled.check(context)
        isIterating = false
        // Callbacks of sources may invalidate the context, both in the check and in the dispatch.
        if hasReady && isValid { withExtendedLifetime(self) { g_main_context_dispatch(context) } }
    }

    // MARK: In a run of GLib's own

    /// The mode of the innermost run, in whose handler GLib runs.
    var mode: RunLoop.Mode { loop.currentMode ?? .default }

    /// Notes that the context is being prepared, and returns whether GLib itself does that.
    func willIterateByItself() -> Bool {
        if !isIterating { isPrepared = false }
        return !isIterating
    }

    func makePass(of guest: RunLoop.Guest) {
        guard let source else { return }
        isPrepared = false
        let (mode, outer) = (mode, depthOfGuest)
        depthOfGuest = loop.contains(source, forMode: RunLoop.Modes(mode)) ? depth + 1 : .min
        defer { depthOfGuest = outer }
        // Passes the stop on to the run in whose handler GLib runs, which continues after GLib's.
        if guest.run(in: mode) == .stopped, loop.currentMode != nil { loop.stop() }
    }
}

@_spi(Ports) extension GLibContext: Opaque {}

@available(*, unavailable, message: "a main context belongs to its loop's thread")
extension GLibContext: Sendable {}
#else
public import RunLoopKit

@available(*, unavailable, message: "RunLoopGLib needs the trait Adapters: .package(…, traits: [\"Adapters\"])")
public final class GLibContext {
    public init(_ context: OpaquePointer? = nil, on loop: RunLoop, inModes modes: RunLoop.Modes = .common) throws {}
}
#endif
