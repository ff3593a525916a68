public import RunLoopCore

/// Calls its handler once, on the loop's thread, when a child process has ended.
///
/// If the child ends while the loop runs in a mode that the source is not in, the handler is called when one of its
/// modes runs; if it had ended before the source was added, in the next pass. After the handler the source is invalid.
///
/// The child is reaped after the handler: within it the child's number is still the child's. Several sources for one
/// child are each called; it is reaped after the first.
///
/// A source belongs to its loop's thread, and is kept by its loop until it has been called, removed or invalidated; it
/// keeps its child.
public final class ChildSource {
    /// The child that it waits for.
    public let child: ChildProcess

    /// Whether the source can still be called.
    public var isValid: Bool { handler != nil }

    /// Where it was made.
    public let origin: RunLoop.Origin

    private var handler: ((ChildProcess, ChildProcess.ExitStatus) -> Void)?
    private let inner = InnerSource()

    /// A source, to be added with ``RunLoopCore/RunLoop/add(_:forMode:)-(ChildSource,_)``.
    ///
    /// - Parameters:
    ///   - child: the child to wait for.
    ///   - handler: called with the child and how it has ended; let go after that.
    ///   - file: for ``origin``, as `line`.
    public init(
        _ child: ChildProcess, handler: @escaping (ChildProcess, ChildProcess.ExitStatus) -> Void,
        file: StaticString = #fileID, line: UInt32 = #line
    ) {
        self.child = child
        self.handler = handler
        origin = RunLoop.Origin(file: file, line: line)
    }

    /// Takes the source out of its loop for good and lets its handler go. On its loop's thread. The child goes on.
    public func invalidate() {
        guard let handler else { return }
        // First, for it traps on a thread that is not the loop's.
        inner.invalidate()
        self.handler = nil
        withExtendedLifetime(handler) {}
    }

    fileprivate func schedule(in loop: RunLoop, _ modes: RunLoop.Modes) throws(SystemError) {
        let make = { [self] () throws(SystemError) -> (DescriptorSource, SignalRegistration?) in
            // The child's descriptor or, where there is none, SIGCHLD.
            let registration: SignalRegistration? = child.descriptor < 0 ? try SignalRegistration(.child) : nil
            let source = DescriptorSource(
                fileDescriptor: registration?.descriptor ?? child.descriptor, events: .readable, origin: origin
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
        // Before the handler, so that it may run the loop; but it stays in the loop, so that the mode is not empty.
        self.handler = nil
        handler(child, status)
        child.reap()
        inner.invalidate()
    }
}

@available(*, unavailable, message: "a source belongs to its loop's thread")
extension ChildSource: Sendable {}

extension RunLoop {
    /// Has a source wait for its child in modes of this loop. A source that is invalid or in another loop is ignored.
    ///
    /// - Throws: ``SystemError`` if there is no descriptor left; the source is then not scheduled.
    public func add(_ source: ChildSource, forMode modes: Modes) throws(SystemError) {
        guard source.isValid else { trace?(.ignored("a child source that is invalid was added")); return }
        try source.schedule(in: self, modes)
    }

    /// Takes a source out of modes of this loop without invalidating it.
    public func remove(_ source: ChildSource, fromMode modes: Modes) {
        source.unschedule(from: self, modes)
    }
}
