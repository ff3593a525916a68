public import RunLoopCore

/// Calls its handler once, on the loop's thread, when a child process has ended.
///
/// If the child ends while the loop runs in another mode, the handler is called when one of the source's modes runs. If
/// it had ended before the source was added, the handler is called in the next pass. After the handler the source is
/// invalid.
///
/// When the handler is called, everything that the child itself wrote can be read: read its pipes until they are empty.
/// The end of the stream may still be missing, because processes that the child started may hold the pipe open. Among
/// the ready sources of a pass a child source is served last, after handlers that read the output.
///
/// The child is reaped after the handler, so its number remains valid during the handler. Several sources may wait for
/// one child; each is called, and the child is reaped after the first.
///
/// The loop keeps a source until it has been called, removed or invalidated, and the source keeps its child. A source
/// that is released without having been added is reported to the ``/RunLoopKit/RunLoop/trace`` of the thread's loop. A
/// source belongs to its loop's thread and is not `Sendable`.
public final class ChildSource {
    /// The child that the source waits for.
    public let child: ChildProcess

    /// Whether the source can still be called.
    public var isValid: Bool { handler != nil }

    /// The place where the source was made.
    public let origin: RunLoop.Origin

    private var handler: ((ChildProcess, ChildProcess.ExitStatus) -> Void)?
    private let inner = InnerSource()

    /// Makes a source. Add it with `RunLoop.add(_:forMode:)`.
    ///
    /// - Parameters:
    ///   - child: the child to wait for.
    ///   - handler: called with the child and its exit status, and released after that.
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

    /// Removes the source from its loop permanently and releases its handler. The child keeps running. Call it on the
    /// loop's thread; harmless when repeated.
    public func invalidate() {
        guard let handler else { return }
        // First, because this traps on any thread except the loop's.
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
            // The child may have ended before the signal was registered.
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
    /// Schedules a child source in modes of this loop. An invalid source is ignored. Call it on the loop's thread.
    ///
    /// - Precondition: the source is in no other loop.
    /// - Throws: ``SystemError`` if no descriptor is left; the source is then not scheduled.
    public func add(_ source: ChildSource, forMode modes: Modes) throws(SystemError) {
        guard source.isValid else { trace?(.ignored("a child source that is invalid was added")); return }
        try source.schedule(in: self, modes)
    }

    /// Removes a child source from modes of this loop without invalidating it. Call it on the loop's thread.
    public func remove(_ source: ChildSource, fromMode modes: Modes) {
        source.unschedule(from: self, modes)
    }
}
