/// Calls its handler when a descriptor can be read or written.
///
/// It is level-triggered: as long as the descriptor is ready, the handler is called in every pass. If the descriptor
/// becomes ready while no mode of the source runs, it is *parked*: it waits at no cost until one does. A pass serves
/// every source that is ready once, so that none keeps others waiting. The source itself does not read, write or close.
///
/// Invalidate the source before you close the descriptor. A source belongs to its loop's thread and is not `Sendable`;
/// other threads stop it through its ``remote``. The loop keeps it until it is invalidated or leaves its last mode, and
/// it keeps its handler until it is invalidated. The end of its loop invalidates it. A source that is released without
/// ever having been added is reported to the ``RunLoop/trace`` of the thread's loop.
public final class DescriptorSource: RunLoop.Source {
    /// The descriptor that is watched.
    public let fileDescriptor: Int32

    /// The events that the descriptor is watched for. An empty set pauses the source, which stays in its modes. Set it
    /// at any time, on the loop's thread. Events found before and no longer asked for are not delivered.
    ///
    /// If the descriptor was closed meanwhile and the system refuses it, the source is invalidated, which is reported
    /// to ``RunLoop/trace``.
    @exclusivity(unchecked) public var events: DescriptorEvents {
        didSet {
            home?.with { $0.checkThread() }
            guard events != oldValue, let loop else { return }
            eventsChanged(from: oldValue, in: loop)
        }
    }

    /// Called when the loop has let the source go because it left its last mode, was invalidated, or lost its loop. The
    /// descriptor is no longer watched and may be closed here. On the loop's thread.
    public var removalHandler: (() -> Void)?

    @exclusivity(unchecked) private var handler: ((DescriptorSource, DescriptorEvents) -> Void)?

    /// Makes a source. Add it with `RunLoop.add(_:forMode:)`.
    ///
    /// - Parameters:
    ///   - fileDescriptor: an open descriptor that can be waited for: a socket, a pipe, a terminal, a timer descriptor
    ///     or an event descriptor.
    ///   - events: the events to watch for; an empty set for a source that begins paused.
    ///   - order: among sources that are ready, smaller numbers are served earlier.
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

    /// A source that is made on behalf of other code, with that code's place.
    public init(
        fileDescriptor: Int32, events: DescriptorEvents, order: Int = 0, origin: RunLoop.Origin,
        handler: @escaping (DescriptorSource, DescriptorEvents) -> Void
    ) {
        self.fileDescriptor = fileDescriptor
        self.events = events
        self.handler = handler
        super.init(order: order, origin: origin)
    }

    deinit {
        if number == 0 && hasHandler { RunLoop.tellOfUnused(description) }
    }

    /// Requests that any thread may send to a descriptor source.
    public typealias Remote = RunLoop.ItemRemote<DescriptorSource>

    /// A handle with which any thread may stop the source. Close the descriptor only when ``removalHandler`` has been
    /// called.
    public var remote: Remote { Remote(link) }

    override func serve(_ found: DescriptorEvents, in loop: RunLoop) -> Bool {
        let wanted = found.intersection(events)
        guard let handler, !wanted.isEmpty else { return false }
        guard passesLimit(in: loop) else {
            loop.park(self)
            return false
        }
        return dispatch(in: loop) { handler(self, wanted) }
    }

    // MARK: Watching

    /// Has the driver watch the descriptor, as it does while the source is in any mode.
    fileprivate func beginWatch(in loop: RunLoop) throws(DescriptorError) {
        let token = loop.descriptors.insert(self)
        do {
            if events.isEmpty {
                try loop.driver.check(fileDescriptor)
            } else {
                try loop.driver.watch(fileDescriptor, for: events, token: token)
            }
        } catch {
            loop.descriptors.remove(token)
            throw error
        }
        self.token = token
        loop.hasOrderedDescriptors = loop.hasOrderedDescriptors || order != 0
    }

    private func endWatch(in loop: RunLoop) {
        guard let token else { return }
        if parkedIndex != nil {
            loop.parked.remove(self)
        } else if !events.isEmpty {
            loop.driver.unwatch(token)
        }
        self.token = nil
        loop.descriptors.remove(token)
    }

    private func eventsChanged(from old: DescriptorEvents, in loop: RunLoop) {
        guard let token, parkedIndex == nil else { return }
        if !old.isEmpty { loop.driver.unwatch(token) }
        watchAgain(in: loop)
    }

    override func unpark(in loop: RunLoop) {
        guard !isCalling, !isHeldBack(in: loop) else { return }
        loop.parked.remove(self)
        watchAgain(in: loop)
    }

    private func watchAgain(in loop: RunLoop) {
        guard let token, !events.isEmpty else { return }
        do {
            try loop.driver.watch(fileDescriptor, for: events, token: token)
        } catch {
            // It is no longer watched, and leaves as a parked one does.
            loop.parked.insert(self)
            loop.emit(.ignored("\(self) was invalidated: \(error)"))
            invalidate()
        }
    }

    // MARK: As an item

    override var kind: RunLoop.ItemKind { .descriptor }
    override var hasHandler: Bool { handler != nil }

    override var detail: String? {
        "descriptor \(fileDescriptor), \(events.isEmpty ? "paused" : "\(events)")"
            + (parkedIndex == nil ? "" : ", ready and parked")
    }

    override func dropHandler(_ body: () -> Void) {
        guard let handler else { return }
        self.handler = nil
        body()
        withExtendedLifetime(handler) {}
    }

    override func mayBeCalledAgain(in loop: RunLoop) {
        loop.parked.lookAgain()
    }

    override func setMembership(_ membership: Membership, in loop: RunLoop) {
        super.setMembership(membership, in: loop)
        if parkedIndex != nil { loop.parked.lookAgain() }
        guard membership.isEmpty, token != nil else { return }
        endWatch(in: loop)
        removalHandler?()
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
        guard admits(source), !modes.isEmpty else { return }
        if source.token == nil { try source.beginWatch(in: self) }
        enrol(source, modes)
    }
}

@available(*, unavailable, message: "a source belongs to its loop's thread; give other threads its remote")
extension DescriptorSource: Sendable {}
