public import RunLoopCore

/// Calls its handler on the loop's thread when the process receives a signal.
///
/// The handler is ordinary code: it runs in a pass of the loop and does not interrupt other code. Deliveries that come
/// while the loop runs in another mode wait until one of the source's modes runs.
///
/// ```swift
/// let source = try SignalSource(signal: .terminate) { _ in loop.stop() }
/// try loop.add(source, forMode: .common)
/// ```
///
/// There may be any number of sources for one signal, in any number of loops, and each receives every delivery. The
/// first source in the process replaces the signal's disposition, which is restored after the last source.
///
/// The loop keeps a source until it is invalidated or removed. A source that is released without having been added is
/// reported to the ``/RunLoopKit/RunLoop/trace`` of the thread's loop. A source belongs to its loop's thread and is not
/// `Sendable`.
public final class SignalSource {
    /// The signal that the source receives.
    public let signal: Signal

    /// The number of deliveries since the handler was last called. Set just before each call.
    ///
    /// Unless the signal is a real-time signal, the system keeps at most one pending delivery: ten signals sent at once
    /// may be one delivery.
    public private(set) var count = 0

    /// Whether the source can still be called.
    public var isValid: Bool { handler != nil }

    /// The place where the source was made.
    public let origin: RunLoop.Origin

    private var handler: ((SignalSource) -> Void)?
    private let inner = InnerSource()

    /// Makes a source. Nothing changes in the process until it is added with `RunLoop.add(_:forMode:)`.
    ///
    /// - Parameters:
    ///   - signal: the signal.
    ///   - handler: called on the loop's thread with the source; kept until the source is invalidated.
    ///   - file: the place for ``origin``, with `line`.
    /// - Throws: ``SignalError`` if the signal cannot be handled: SIGKILL, SIGSTOP, signals that report a fault, and
    ///   numbers that are no signal.
    public init(
        signal: Signal, handler: @escaping (SignalSource) -> Void, file: StaticString = #fileID, line: UInt32 = #line
    ) throws(SignalError) {
        try SignalError.check(signal)
        self.signal = signal
        self.handler = handler
        origin = RunLoop.Origin(file: file, line: line)
    }

    deinit {
        if isValid && !inner.wasAdded { RunLoop.tellOfUnused("the source of signal \(signal) (\(origin))") }
    }

    /// Removes the source from its loop permanently and releases its handler. Unhandled deliveries are dropped. Call it
    /// on the loop's thread; harmless when repeated.
    public func invalidate() {
        guard let handler else { return }
        // First, because this traps on any thread except the loop's.
        inner.invalidate()
        self.handler = nil
        withExtendedLifetime(handler) {}
    }

    /// Whether the source keeps runs in its modes from finishing; see ``/RunLoopKit/RunLoop/Source/keepsModesAlive``.
    /// Set it before the source is added.
    public var keepsModesAlive = true

    /// Called when the source has left its loop.
    var removalHandler: (() -> Void)? {
        get { inner.removalHandler }
        set { inner.removalHandler = newValue }
    }

    fileprivate func schedule(in loop: RunLoop, _ modes: RunLoop.Modes) throws(SystemError) {
        let make = { [self] () throws(SystemError) -> (DescriptorSource, (any SignalCounter)?) in
            let registration = try WorldSystem.of(loop).count(signal: signal.rawValue)
            let source = DescriptorSource(
                fileDescriptor: registration.descriptor, events: .readable, origin: origin
            ) { [self] _, _ in
                let count = registration.take()
                guard count > 0 else { return }
                self.count = count
                handler?(self)
            }
            source.name = "signal \(signal)"
            source.keepsModesAlive = keepsModesAlive
            return (source, registration)
        }
        try inner.add(to: loop, modes, for: "watch for \(signal)", make)
    }

    fileprivate func unschedule(from loop: RunLoop, _ modes: RunLoop.Modes) {
        inner.remove(from: loop, modes)
    }
}

@available(*, unavailable, message: "a source belongs to its loop's thread")
extension SignalSource: Sendable {}

extension RunLoop {
    /// Schedules a signal source in modes of this loop. Every delivery counts from the moment that this returns.
    ///
    /// An invalid source is ignored, and a source in another loop traps. At least one thread must not block the signal;
    /// a source changes no thread's signal mask. Call it on the loop's thread. O(number of sources in the process).
    ///
    /// - Throws: ``SystemError`` if no descriptor is left; the source is then not scheduled.
    public func add(_ source: SignalSource, forMode modes: Modes) throws(SystemError) {
        guard source.isValid else { trace?(.ignored("a signal source that is invalid was added")); return }
        try source.schedule(in: self, modes)
    }

    /// Removes a signal source from modes of this loop without invalidating it. Once it is out of its last mode it
    /// receives nothing, and unhandled deliveries are dropped. Call it on the loop's thread.
    public func remove(_ source: SignalSource, fromMode modes: Modes) {
        source.unschedule(from: self, modes)
    }
}
