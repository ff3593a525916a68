public import RunLoopCore

/// Calls its handler once, on the loop's thread, when a child process has ended.
///
/// If the child ends while the loop runs in another mode, the handler is called when one of the source's modes runs. If
/// it had ended before the source was added, the handler is called in the next pass. After the handler the source is
/// invalid.
///
/// When the handler is called, everything that the child itself has written can be read: an end of one of its pipes that
/// is read until there is nothing has it all, though perhaps not the end of the stream, since what the child has started
/// may hold the pipe open. Among sources that are ready in the same pass a child source is served last, so that handlers
/// which read the output are called before.
///
/// The child is reaped after the handler, so during the handler its number is still its own. Several sources may wait
/// for one child; each is called, and the child is reaped after the first.
///
/// The loop keeps a source until it has been called, removed or invalidated, and the source keeps its child. One that is
/// let go without ever having been added is told to the ``/RunLoopKit/RunLoop/trace`` of the thread's loop. A source
/// belongs to its loop's thread and is not `Sendable`.
public final class ChildSource {
    /// The child that it waits for.
    public let child: ChildProcess

    /// Whether the source can still be called.
    public var isValid: Bool { handler != nil }

    /// Where it was made.
    public let origin: RunLoop.Origin

    private var handler: ((ChildProcess, ChildProcess.ExitStatus) -> Void)?
    private let inner = InnerSource()

    /// Makes a source. Add it with `RunLoop.add(_:forMode:)`.
    ///
    /// - Parameters:
    ///   - child: the child to wait for.
    ///   - handler: called with the child and with how it ended; let go after that.
    ///   - file: the place for ``origin``, with `line`.
    public init(
        _ child: ChildProcess, handler: @escaping (ChildProcess, ChildProcess.ExitStatus) -> Void,
        file: StaticString = #fileID, line: UInt32 = #line
    ) {
        self.child = child
        self.handler = handler
        origin = RunLoop.Origin(file: file, line: line)
    }

    deinit {
        guard isValid && !inner.wasAdded else { return }
        RunLoop.tellOfUnused("the source of process \(child.processIdentifier) (\(origin))")
    }

    /// Takes the source out of its loop for good and lets its handler go. The child keeps running. Call it on the
    /// loop's thread; harmless when repeated.
    public func invalidate() {
        guard let handler else { return }
        // First, because it traps on any thread but the loop's.
        inner.invalidate()
        self.handler = nil
        withExtendedLifetime(handler) {}
    }

    fileprivate func schedule(in loop: RunLoop, _ modes: RunLoop.Modes) throws(SystemError) {
        let make = { [self] () throws(SystemError) -> (DescriptorSource, (any SignalCounter)?) in
            // The child's descriptor, or SIGCHLD if there is none.
            let registration =
                child.descriptor < 0 ? try WorldSystem.of(loop).count(signal: Signal.child.rawValue) : nil
            let source = DescriptorSource(
                fileDescriptor: registration?.descriptor ?? child.descriptor, events: .readable, order: .max,
                origin: origin
            ) { [self] _, _ in
                _ = registration?.take()
                serve()
            }
            source.name = "child \(child.processIdentifier)"
            // It may have ended before anybody listened for the signal.
            registration?.prime()
            return (source, registration)
        }
        try inner.add(to: loop, modes, for: "watch for the end of process \(child.processIdentifier)", make)
    }

    fileprivate func unschedule(from loop: RunLoop, _ modes: RunLoop.Modes) {
        inner.remove(from: loop, modes)
    }

    private func serve() {
        guard let handler, let status = child.look() else { return }
        // Cleared before the call, so that the handler may run the loop. The source stays in the loop, so that its mode
        // is not empty.
        self.handler = nil
        handler(child, status)
        child.reap()
        inner.invalidate()
    }
}

@available(*, unavailable, message: "a source belongs to its loop's thread")
extension ChildSource: Sendable {}

extension RunLoop {
    /// Schedules a child source in modes of this loop. A source that is invalid is ignored. Call it on the loop's
    /// thread.
    ///
    /// - Precondition: the source is in no other loop.
    /// - Throws: ``SystemError`` if there is no descriptor left; the source is then not scheduled.
    public func add(_ source: ChildSource, forMode modes: Modes) throws(SystemError) {
        guard source.isValid else { trace?(.ignored("a child source that is invalid was added")); return }
        try source.schedule(in: self, modes)
    }

    /// Takes a child source out of modes of this loop without invalidating it. Call it on the loop's thread.
    public func remove(_ source: ChildSource, fromMode modes: Modes) {
        source.unschedule(from: self, modes)
    }
}
