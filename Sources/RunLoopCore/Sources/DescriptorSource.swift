/// Calls its handler when a descriptor can be read or written.
///
/// A source is level-triggered: as long as the descriptor is ready, the handler is called in every pass. If the
/// descriptor becomes ready while no mode of the source runs, the source is *parked*: it waits at no cost until one
/// does. A pass serves every ready source once, so that none keeps others waiting. The source itself does not read,
/// write or close.
///
/// Invalidate the source before you close the descriptor. A source belongs to its loop's thread and is not `Sendable`;
/// other threads stop it through its ``remote``. The loop keeps it until it is invalidated or leaves its last mode, and
/// it keeps its handler until it is invalidated. The end of its loop invalidates it. A source that is released without
/// ever having been added is reported to the ``RunLoop/trace`` of the thread's loop.
public final class DescriptorSource: RunLoop.WatchedSource {
    /// The watched descriptor.
    public var fileDescriptor: Int32 { descriptor }

    /// The events for which the descriptor is watched. An empty set pauses the source, which stays in its modes. Can be
    /// set at any time, on the loop's thread. Events found before and no longer wanted are not delivered.
    ///
    /// If the descriptor was closed meanwhile and the system refuses it, the source is invalidated, which is reported
    /// to ``RunLoop/trace``.
    public var events: DescriptorEvents {
        get { interest }
        set { interest = newValue }
    }

    /// A closure to call when the source has left its loop: it left its last mode, was invalidated, or lost its loop.
    /// The descriptor is no longer watched and may be closed here. On the loop's thread.
    public var removalHandler: (() -> Void)? { willSet { checkThread() } }

    private var handler: ((DescriptorSource, DescriptorEvents) -> Void)?

    /// Creates a source. Add it with `RunLoop.add(_:forMode:)`.
    ///
    /// - Parameters:
    ///   - fileDescriptor: an open descriptor that can be waited for: a socket, a pipe, a terminal, a timer descriptor
    ///     or an event descriptor.
    ///   - events: the events to watch for; an empty set for a source that begins paused.
    ///   - order: the source's place among ready sources; smaller numbers are served earlier.
    ///   - handler: called on the loop's thread with the events found; kept until the source is invalidated.
    ///   - file: the place for ``RunLoop/Item/origin``, with `line`.
    public convenience init(
        fileDescriptor: Int32, events: DescriptorEvents, order: Int = 0,
        handler: @escaping (DescriptorSource, DescriptorEvents) -> Void, file: StaticString = #fileID,
        line: UInt32 = #line
    ) {
        self.init(
            fileDescriptor: fileDescriptor, events: events, order: order,
            origin: RunLoop.Origin(file: file, line: line), handler: handler)
    }

    /// Creates a source on behalf of other code, with that code's place.
    public init(
        fileDescriptor: Int32, events: DescriptorEvents, order: Int = 0, origin: RunLoop.Origin,
        handler: @escaping (DescriptorSource, DescriptorEvents) -> Void
    ) {
        self.handler = handler
        super.init(descriptor: fileDescriptor, interest: events, order: order, origin: origin)
    }

    deinit {
        if number == 0 && hasHandler { RunLoop.tellOfUnused(description) }
    }

    /// A handle by which any thread may send requests to a descriptor source.
    public typealias Remote = RunLoop.ItemRemote<DescriptorSource>

    /// A handle by which any thread may stop the source. Close the descriptor only when ``removalHandler`` has been
    /// called.
    public var remote: Remote { Remote(link: link) }

    override func serve(_ found: DescriptorEvents, in loop: RunLoop) -> Bool {
        guard let handler, let events = due(of: found, in: loop) else { return false }
        return serve(in: loop) { handler(self, events) }
    }

    override func wasRemoved() { removalHandler?() }

    override var hasHandler: Bool { handler != nil }

    override func dropHandler(_ body: () -> Void) {
        if let handler = handler.take() { withExtendedLifetime(handler, body) }
    }
}

extension RunLoop {
    /// Schedules a source in modes of this loop.
    ///
    /// The descriptor is watched as long as the source is in any mode. An invalid source is ignored and reported to
    /// ``trace``. On the loop's thread.
    ///
    /// - Precondition: the source is in no other loop.
    /// - Throws: ``DescriptorError`` if the descriptor is not open, or cannot be waited for; the source is then not
    ///   scheduled.
    public func add(_ source: DescriptorSource, forMode modes: Modes) throws(DescriptorError) {
        try schedule(source, modes)
    }
}

@available(*, unavailable, message: "a source belongs to its loop's thread; give other threads its remote")
extension DescriptorSource: Sendable {}
