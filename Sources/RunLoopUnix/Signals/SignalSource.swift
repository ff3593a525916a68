public import RunLoopCore

/// Calls its handler on the loop's thread when the process has received a signal.
///
/// The handler is ordinary code: it runs in a pass of the loop, not in the middle of something else. A delivery that
/// comes while the loop runs in a mode that the source is not in waits, with those before it, until it does.
///
/// ```swift
/// let source = try SignalSource(signal: .terminate) { _ in loop.stop() }
/// try loop.add(source, forMode: .common)
/// ```
///
/// Any number of sources, in any number of loops, may be there for one signal; each hears of every delivery. The first
/// one of the process takes the place of the signal's disposition, which comes back when the last one goes. A source
/// belongs to its loop's thread; it is kept by its loop until it is invalidated or removed.
public final class SignalSource {
    /// The signal that it hears of.
    public let signal: Signal

    /// How many deliveries there were since the handler was called before; set when it is called.
    ///
    /// Of a signal that is not a real-time signal the system itself keeps no more than one that waits: ten that were
    /// sent at once may be one delivery.
    public private(set) var count = 0

    /// Whether the source can still be called.
    public var isValid: Bool { handler != nil }

    /// Where it was made.
    public let origin: RunLoop.Origin

    private var handler: ((SignalSource) -> Void)?
    private let inner = InnerSource()

    /// A source, to be added with ``RunLoopCore/RunLoop/add(_:forMode:)-(SignalSource,_)``. Until then nothing of the
    /// process changes.
    ///
    /// - Parameters:
    ///   - signal: the signal.
    ///   - handler: called on the loop's thread; kept until the source is invalidated.
    ///   - file: for ``origin``, as `line`.
    /// - Throws: ``SignalError`` for a signal that cannot be handled: SIGKILL and SIGSTOP, those that tell of a fault,
    ///   and numbers that are no signal.
    public init(
        signal: Signal, handler: @escaping (SignalSource) -> Void, file: StaticString = #fileID, line: UInt32 = #line
    ) throws(SignalError) {
        try SignalError.check(signal)
        self.signal = signal
        self.handler = handler
        origin = RunLoop.Origin(file: file, line: line)
    }

    /// Takes the source out of its loop for good and lets its handler go. On its loop's thread. What was delivered and
    /// not handled yet is dropped.
    public func invalidate() {
        guard let handler else { return }
        // First, for it traps on a thread that is not the loop's.
        inner.invalidate()
        self.handler = nil
        withExtendedLifetime(handler) {}
    }

    /// Whether a run in one of its modes goes on for it; see ``RunLoopCore/RunLoop/Source/keepsModesAlive``.
    public var keepsModesAlive = true

    fileprivate func schedule(in loop: RunLoop, _ modes: RunLoop.Modes) throws(SystemError) {
        let make = { [self] () throws(SystemError) -> (DescriptorSource, SignalRegistration?) in
            let registration = try SignalRegistration(signal)
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
    /// Has a source hear of its signal in modes of this loop. Every delivery from the moment that this returns counts.
    ///
    /// A source that is invalid or in another loop is ignored. Threads must not block the signal, or at least one of
    /// them must not; a source changes no thread's signal mask. O(number of sources of the process).
    ///
    /// - Throws: ``SystemError`` if there is no descriptor left; the source is then not scheduled.
    public func add(_ source: SignalSource, forMode modes: Modes) throws(SystemError) {
        guard source.isValid else { trace?(.ignored("a signal source that is invalid was added")); return }
        try source.schedule(in: self, modes)
    }

    /// Takes a source out of modes of this loop without invalidating it. Out of its last mode it hears of nothing any
    /// more, and what was delivered and not handled yet is dropped.
    public func remove(_ source: SignalSource, fromMode modes: Modes) {
        source.unschedule(from: self, modes)
    }
}
