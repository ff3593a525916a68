@_spi(Ports) public import RunLoopCore

/// A source that calls its handler once, on the loop's thread, when a child process has ended.
///
/// If the child ends while the loop runs in another mode, the handler is called when one of the source's modes runs. If
/// the child ended before the source was added, the handler is called in the next pass. After the handler, the source
/// is invalid.
///
/// When the handler is called, the child's entire output is available: read its pipes until they are empty. The end of
/// a stream may still be missing, because processes that the child started may hold the pipe open. A child source is
/// served last among the ready sources of a pass, after handlers that read the output.
///
/// The child is reaped after the handler, so its number is valid in the handler. Several sources may wait for one
/// child; each is called, and the child is reaped after the first.
///
/// The loop keeps a source until it has been called, removed or invalidated, and the source keeps its child. The end of
/// the loop invalidates it. A source that is released without having been added is reported to the
/// ``/RunLoopKit/RunLoop/trace`` of the thread's loop. A source belongs to its loop's thread and is not `Sendable`.
public final class ChildSource: RunLoop.SystemSource {
    /// The child that the source waits for.
    public let child: ChildProcess

    /// The counter of SIGCHLD while the source is in a loop, if the child has no descriptor.
    private var counter: (any SignalCounter)?

    /// Creates a source. Add it with `RunLoop.add(_:forMode:)`.
    ///
    /// - Parameters:
    ///   - child: the child to wait for.
    ///   - handler: called with the child and its exit status, and then released.
    ///   - file: the place for ``/RunLoopKit/RunLoop/Item/origin``, with `line`.
    public init(
        _ child: ChildProcess, handler: @escaping (ChildProcess, ChildProcess.ExitStatus) -> Void,
        file: StaticString = #fileID, line: UInt32 = #line
    ) {
        self.child = child
        super.init(
            name: "child \(child.processIdentifier)", order: .max, origin: RunLoop.Origin(file: file, line: line))
        setHandler(
            { [unowned self] in
                _ = counter?.take()
                // The source stays in the loop during the handler, so that its mode is not empty.
                guard let status = child.look() else { return }
                handler(child, status)
                child.reap()
                invalidate()
            }, cleanup: { [unowned self] in counter?.end() })
    }

    /// Returns the child's descriptor, or a descriptor that counts SIGCHLD if the child has none.
    fileprivate func open(in loop: RunLoop) throws(SystemError) -> Int32 {
        guard child.descriptor < 0 else { return child.descriptor }
        let counter = try WorldSystem.of(loop).count(signal: Signal.child.rawValue)
        self.counter = counter
        // The child may have ended before the signal was registered.
        counter.prime()
        return counter.descriptor
    }
}

@available(*, unavailable, message: "a source belongs to its loop's thread")
extension ChildSource: Sendable {}

extension RunLoop {
    /// Schedules a child source in modes of this loop. An invalid source is ignored and reported to
    /// ``/RunLoopKit/RunLoop/trace``. Call it on the loop's thread.
    ///
    /// - Precondition: the source is in no other loop.
    /// - Throws: ``SystemError`` if no descriptor is left; the source is then not scheduled.
    public func add(_ source: ChildSource, forMode modes: Modes) throws(SystemError) {
        let operation = "watch for the end of process \(source.child.processIdentifier)"
        try schedule(source, modes, for: operation) { () throws(SystemError) in try source.open(in: self) }
    }
}
