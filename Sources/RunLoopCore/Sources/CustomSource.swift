/// A source that is signalled by hand: CFRunLoop's version-0 source.
///
/// A signal marks the source as ready. Its handler is called in the next pass of its loop in one of its modes, once for
/// any number of signals. A source keeps its modes from being empty, signalled or not.
///
/// A source belongs to one loop at a time and to that loop's thread, and is not `Sendable`; other threads signal it
/// through its ``remote``. The loop keeps it until it is invalidated or leaves its last mode, and it keeps its handler
/// until it is invalidated. The end of its loop invalidates it. A source that is released without ever having been
/// added is reported to the ``RunLoop/trace`` of the thread's loop.
///
/// Source: Apple's page on `CFRunLoopSource`.
public final class CustomSource: RunLoop.Source {
    /// A closure to call for each mode by name that the source joins; not for ``RunLoop/Modes-swift.struct/every``.
    public var scheduleHandler: ((RunLoop, RunLoop.Mode) -> Void)? { willSet { checkThread() } }
    /// A closure to call for each mode that the source leaves: when it is removed or invalidated, or when its loop
    /// ends.
    public var cancelHandler: ((RunLoop, RunLoop.Mode) -> Void)? { willSet { checkThread() } }

    /// A Boolean value that indicates whether the source is marked as ready.
    public var isSignalled: Bool { signalNumber != 0 }

    private var handler: ((CustomSource) -> Void)?

    /// Creates a source. Add it with `RunLoop.add(_:forMode:)`.
    ///
    /// A source whose handler does nothing is the usual way to keep a run from finishing.
    public convenience init(
        order: Int = 0, handler: @escaping (CustomSource) -> Void = { _ in }, file: StaticString = #fileID,
        line: UInt32 = #line
    ) {
        self.init(order: order, origin: RunLoop.Origin(file: file, line: line), handler: handler)
    }

    /// Creates a source on behalf of other code, with that code's place.
    public init(order: Int = 0, origin: RunLoop.Origin, handler: @escaping (CustomSource) -> Void) {
        self.handler = handler
        super.init(order: order, origin: origin)
    }

    deinit {
        if number == 0 && hasHandler { RunLoop.tellOfUnused(description) }
    }

    /// Marks the source as ready, without waking the loop, which is awake on its own thread. If it may already have
    /// decided to sleep, as in an observer of `beforeWaiting`, call ``RunLoop/wakeUp()`` too. On the loop's thread,
    /// O(1).
    public func signal() {
        checkThread()
        guard isValid, !isSignalled else { return }
        signalNumber = home?.with { $0.signals.add(self) } ?? .max
    }

    /// A handle by which any thread may send requests to a custom source.
    public typealias Remote = RunLoop.ItemRemote<CustomSource>

    /// A handle by which any thread may signal or stop the source.
    public var remote: Remote { Remote(link: link) }

    /// Calls the handler, and clears the mark first, so that the handler can signal again.
    override func serve(_ found: DescriptorEvents, in loop: RunLoop) -> Bool {
        guard let handler, passesLimit(in: loop) else { return false }
        assert(signalNumber != 0, "a source was served that is not signalled")
        signalNumber = 0
        return serve(in: loop) { handler(self) }
    }

    // MARK: As an item

    override var kind: RunLoop.ItemKind { .source }
    override var hasHandler: Bool { handler != nil }
    override var detail: String? { isSignalled ? "signalled" : nil }
    override var isReady: Bool { isSignalled }

    override func dropHandler(_ body: () -> Void) {
        guard let handler = handler.take() else { return }
        signalNumber = 0
        withExtendedLifetime(handler, body)
    }

    override func mayBeCalledAgain(in loop: RunLoop) {
        loop.signals.lookAgain()
    }

    override func setMembership(_ membership: Membership, in loop: RunLoop) {
        let old = self.membership
        super.setMembership(membership, in: loop)
        if old.isEmpty && isSignalled { signalNumber = loop.signals.add(self) }
        loop.signals.lookAgain()
        membership.modes.subtracting(old.modes).forEach { scheduleHandler?(loop, $0) }
        old.modes.subtracting(membership.modes).forEach { cancelHandler?(loop, $0) }
    }
}

extension RunLoop.ItemRemote where Subject == CustomSource {
    /// Marks the source as ready and wakes its loop. Does nothing while the source is in no loop. Any thread.
    public func signal() {
        link.ask { ($0 as? CustomSource)?.signal() }
    }
}

extension RunLoop {
    /// Schedules a source in modes of this loop, and calls its schedule handler for each new one. An invalid source is
    /// ignored and reported to ``trace``. On the loop's thread.
    ///
    /// - Precondition: the source is in no other loop.
    public func add(_ source: CustomSource, forMode modes: Modes) {
        enrol(source, modes)
    }
}

@available(*, unavailable, message: "a source belongs to its loop's thread; give other threads its remote")
extension CustomSource: Sendable {}
