@_spi(Ports) public import RunLoopCore

/// A source that calls its handler on the loop's thread when the process receives a signal.
///
/// The handler is ordinary code that runs in a pass of the loop and does not interrupt other code. Deliveries in
/// another mode wait until one of the source's modes runs.
///
/// ```swift
/// let source = try SignalSource(signal: .terminate) { _ in loop.stop() }
/// try loop.add(source, forMode: .common)
/// ```
///
/// A signal may have any number of sources, in any number of loops, and each receives every delivery. The first source
/// in the process replaces the signal's disposition, which is restored after the last source.
///
/// The loop keeps a source until it is invalidated or removed, and the end of the loop invalidates it. A source that is
/// released without having been added is reported to the ``/RunLoopKit/RunLoop/trace`` of the thread's loop. A source
/// belongs to its loop's thread and is not `Sendable`.
public final class SignalSource: RunLoop.SystemSource {
    /// The signal that the source receives.
    public let signal: Signal

    /// The number of deliveries since the handler was last called, updated just before each call.
    ///
    /// The system keeps at most one pending delivery of a signal that is not a real-time signal: ten signals sent at
    /// once may be one delivery.
    public private(set) var count = 0

    /// The counter of deliveries while the source is in a loop.
    private var counter: (any SignalCounter)?

    /// Creates a source, which has no effect on the process until you add it with `RunLoop.add(_:forMode:)`.
    ///
    /// - Parameters:
    ///   - signal: the signal.
    ///   - order: the order among ready sources; smaller numbers are served earlier.
    ///   - handler: called on the loop's thread with the source; kept until the source is invalidated.
    ///   - file: the place for ``/RunLoopKit/RunLoop/Item/origin``, with `line`.
    /// - Throws: ``SignalError`` if the signal cannot be handled: SIGKILL, SIGSTOP, signals that report a fault, and
    ///   numbers that are not signals.
    public init(
        signal: Signal, order: Int = 0, handler: @escaping (SignalSource) -> Void, file: StaticString = #fileID,
        line: UInt32 = #line
    ) throws(SignalError) {
        try SignalError.check(signal)
        self.signal = signal
        super.init(name: "signal \(signal)", order: order, origin: RunLoop.Origin(file: file, line: line))
        setHandler(
            { [unowned self] in
                guard let count = counter?.take(), count > 0 else { return }
                assert(isScheduled, "a signal is reported to a source that is in no loop")
                self.count = count
                handler(self)
            },
            // Called at once, even within the handler, because a handler that invalidates its source and then raises
            // the signal expects the former disposition.
            cleanup: { [unowned self] in counter?.end() })
    }

    fileprivate func beginCounting(in loop: RunLoop) throws(SystemError) -> Int32 {
        let counter = try WorldSystem.of(loop).count(signal: signal.rawValue)
        self.counter = counter
        return counter.descriptor
    }
}

@available(*, unavailable, message: "a source belongs to its loop's thread")
extension SignalSource: Sendable {}

extension RunLoop {
    /// Schedules a signal source in modes of this loop. Every delivery counts once this call has returned.
    ///
    /// An invalid source is ignored and reported to ``/RunLoopKit/RunLoop/trace``, and a source in another loop traps.
    /// At least one thread must not block the signal; a source changes no thread's signal mask. Once the source has
    /// left its last mode, it receives nothing, and unhandled deliveries are dropped. Call it on the loop's thread.
    /// O(number of sources in the process).
    ///
    /// - Throws: ``SystemError`` if no descriptor is left; the source is then not scheduled.
    public func add(_ source: SignalSource, forMode modes: Modes) throws(SystemError) {
        try schedule(source, modes, for: "watch for \(source.signal)") { () throws(SystemError) in
            try source.beginCounting(in: self)
        }
    }
}
