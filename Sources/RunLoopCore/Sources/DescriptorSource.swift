/// Calls its handler when a descriptor can be read or written.
///
/// The interest is level-triggered: as long as the descriptor is ready, the handler is called again in every pass. What
/// becomes ready while no mode of the source runs waits until one does (R73), without costing anything meanwhile: the
/// descriptor is *parked*. The source does not read, write or close.
///
/// Invalidate the source before the descriptor is closed.
public final class DescriptorSource {
    /// The descriptor that is watched.
    public let fileDescriptor: Int32
    /// What it is watched for.
    public let events: DescriptorEvents

    /// A name for reports.
    public var name: String?

    /// Where it was made.
    @exclusivity(unchecked) public package(set) var origin: RunLoop.Origin

    /// Of several that are ready, smaller numbers are served earlier; equal ones in the order in which they were found
    /// ready. All that are ready are served in a pass, each once: none keeps others waiting.
    public let order: Int

    /// How often the source may be called; what is ready meanwhile waits. `nil`, the default, for no limit.
    public var rateLimit: RateLimit? {
        get { window?.limit }
        set { window = newValue.map(RateWindow.init) }
    }
    // This and the other state of a call is unchecked as in `RunLoop`: one thread, and no access is open while the
    // handler runs. It is part of the 32 % that `Connection` tells of.
    @exclusivity(unchecked) var window: RateWindow?

    /// Called when the loop has let the source go: it has left its last mode, was invalidated, or its loop has ended. The
    /// descriptor is not watched any more and may be closed. For sources that own the descriptor that they wait for.
    package var leaveHandler: (() -> Void)?

    /// Whether the source can still be called.
    public var isValid: Bool { handler != nil }

    @exclusivity(unchecked) private var handler: ((DescriptorSource, DescriptorEvents) -> Void)?
    @exclusivity(unchecked) private(set) var isDispatching = false
    @exclusivity(unchecked) var membership = Membership.none
    @exclusivity(unchecked) var token: SourceToken?
    @exclusivity(unchecked) var isParked = false
    unowned(unsafe) var loop: RunLoop?

    /// A source, to be added with ``RunLoop/add(_:forMode:)-(DescriptorSource,_)``.
    ///
    /// - Parameters:
    ///   - fileDescriptor: an open descriptor of a kind that can be waited for: a socket, a pipe, a terminal, a timer
    ///     or event descriptor.
    ///   - events: what to watch for; not empty.
    ///   - order: of several that are ready, smaller numbers are served earlier.
    ///   - handler: called on the loop's thread with what the descriptor is ready for; kept until the source is
    ///     invalidated.
    ///   - file: for ``origin``, as `line`.
    public init(
        fileDescriptor: Int32, events: DescriptorEvents, order: Int = 0,
        handler: @escaping (DescriptorSource, DescriptorEvents) -> Void, file: StaticString = #fileID,
        line: UInt32 = #line
    ) {
        require(!events.isEmpty, "a descriptor source watches for something: give .readable, .writable or both")
        self.fileDescriptor = fileDescriptor
        self.events = events
        self.order = order
        origin = RunLoop.Origin(file: file, line: line)
        self.handler = handler
    }

    /// Takes the source out of its loop for good and lets its handler go. On its loop's thread. A readiness that was
    /// already collected is not delivered any more.
    public func invalidate() {
        guard let handler else { return }
        loop?.checkThread()
        self.handler = nil
        loop?.remove(self)
        withExtendedLifetime(handler) {}
    }

    func serve(_ events: DescriptorEvents) {
        guard let handler else { return }
        isDispatching = true
        handler(self, events)
        isDispatching = false
    }
}
