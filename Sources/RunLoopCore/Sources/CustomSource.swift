/// A source that is signalled by hand: CFRunLoop's version-0 source (R65–R71).
///
/// Signalling marks it as ready; its handler is called in the next pass of its loop in one of its modes, once however
/// often it was signalled. A source keeps its modes from being empty, signalled or not (R11).
///
/// A source belongs to one loop at a time; other threads signal it through its ``remote``.
public final class CustomSource {
    /// Smaller numbers are served earlier; equal ones in the order in which they were signalled (R67).
    public let order: Int

    /// A name for reports.
    public var name: String?

    /// Where it was made.
    @exclusivity(unchecked) public package(set) var origin: RunLoop.Origin

    /// Called for each mode that the source joins (R70).
    public var scheduleHandler: ((RunLoop, RunLoop.Mode) -> Void)?
    /// Called for each mode that the source leaves, when it is removed or invalidated, or its loop ends (R70).
    public var cancelHandler: ((RunLoop, RunLoop.Mode) -> Void)?

    /// Whether the source can still be served.
    public var isValid: Bool { handler != nil }
    /// Whether the source is marked as ready.
    public private(set) var isSignalled = false

    /// How often the source may be called; a signal meanwhile waits. `nil`, the default, for no limit.
    public var rateLimit: RateLimit? {
        get { window?.limit }
        set { window = newValue.map(RateWindow.init) }
    }
    var window: RateWindow?

    private var handler: ((CustomSource) -> Void)?
    private(set) var isDispatching = false
    private var remoteBox: Remote?
    var membership = Membership.none
    /// Its place among the sources of its loop.
    var number = 0
    unowned(unsafe) var loop: RunLoop? {
        didSet { remoteBox?.loopChanged(to: loop?.remote) }
    }

    /// A source, to be added with ``RunLoop/add(_:forMode:)-(CustomSource,_)``.
    ///
    /// With a handler that does nothing it is the usual way to keep a run from finishing.
    public init(
        order: Int = 0, handler: @escaping (CustomSource) -> Void = { _ in }, file: StaticString = #fileID,
        line: UInt32 = #line
    ) {
        self.order = order
        origin = RunLoop.Origin(file: file, line: line)
        self.handler = handler
    }

    /// Marks the source as ready. The loop is not woken (R65): on the loop's own thread it is awake, and before a sleep
    /// that has already been decided ``RunLoop/wakeUp()`` is the documented companion.
    public func signal() {
        loop?.checkThread()
        guard isValid, !isSignalled else { return }
        isSignalled = true
        loop?.signalled.append(self)
    }

    /// Takes the source out of its loop for good and lets its handler go (R71). On its loop's thread.
    public func invalidate() {
        guard let handler else { return }
        loop?.checkThread()
        self.handler = nil
        isSignalled = false
        if let loop {
            loop.signalled.removeAll { $0 === self }
            loop.setMembership(.none, of: self)
        }
        withExtendedLifetime(handler) {}
    }

    /// A handle with which any thread may signal the source.
    public var remote: Remote {
        if remoteBox == nil { remoteBox = Remote(self, loop: loop?.remote) }
        return remoteBox!
    }

    /// Serves the source; the mark is cleared first, so that the handler can signal anew (R66).
    func serve() {
        isSignalled = false
        guard let handler else { return }
        isDispatching = true
        handler(self)
        isDispatching = false
    }
}

extension CustomSource {
    /// Signals its source from any thread and wakes the source's loop.
    public final class Remote: Sendable {
        private let loop: Locked<RunLoop.Remote?>
        // Set once, here, and read only on the thread of the source's loop, when the loop delivers the signal.
        private nonisolated(unsafe) weak let source: CustomSource?

        init(_ source: CustomSource, loop: RunLoop.Remote?) {
            self.source = source
            self.loop = Locked(loop)
        }

        /// Marks the source as ready and wakes its loop. Nothing happens while the source is in no loop. Any thread.
        public func signal() {
            loop.withLock { $0 }?.performUrgently { _ in self.source?.signal() }
        }

        func loopChanged(to remote: RunLoop.Remote?) {
            loop.withLock { $0 = remote }
        }
    }
}
