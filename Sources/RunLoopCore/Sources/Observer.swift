/// A callback at certain points of every pass.
///
/// Observers do not keep a mode from being empty: a mode with nothing else in it does not run, and its observers are
/// not called. An observer belongs to its loop's thread and is not `Sendable`; other threads stop it through its
/// ``remote``. The loop keeps it until it is invalidated or leaves its last mode. The end of its loop invalidates it.
///
/// Source: Apple's page on `CFRunLoopObserver`.
public final class Observer: RunLoop.UntimedItem {
    /// The activities at which the observer is called.
    public let activities: RunLoop.Activity
    /// A Boolean value that indicates whether the observer is called more than once; if not, it is invalidated after
    /// its first call.
    public let repeats: Bool
    /// The observer's place among observers: smaller numbers are called earlier, and equal ones in the order in which
    /// they were added.
    public let order: Int

    private var handler: ((Observer, RunLoop.Activity) -> Void)?

    /// Creates an observer. Add it with `RunLoop.add(_:forMode:)`.
    public init(
        activities: RunLoop.Activity, repeats: Bool = true, order: Int = 0,
        handler: @escaping (Observer, RunLoop.Activity) -> Void, file: StaticString = #fileID, line: UInt32 = #line
    ) {
        self.activities = activities
        self.repeats = repeats
        self.order = order
        self.handler = handler
        super.init(origin: RunLoop.Origin(file: file, line: line))
    }

    /// The points of a run at which an observer can be called.
    public typealias Activity = RunLoop.Activity
    /// A handle by which any thread may send requests to an observer.
    public typealias Remote = RunLoop.ItemRemote<Observer>

    /// A handle by which any thread may stop the observer.
    public var remote: Remote { Remote(link: link) }

    override func observe(_ activity: RunLoop.Activity, in loop: RunLoop) {
        guard !isCalling, isValid, let handler else { return }
        dispatch(in: loop) { handler(self, activity) }
        if !repeats { invalidate() }
    }

    // MARK: As an item

    override var kind: RunLoop.ItemKind { .observer }
    override var hasHandler: Bool { handler != nil }
    override var keepsAlive: Bool { false }

    override func dropHandler(_ body: () -> Void) {
        if let handler = handler.take() { withExtendedLifetime(handler, body) }
    }

    override var observedActivities: RunLoop.Activity { activities }
    override var place: Int { order }
}

extension RunLoop {
    /// Schedules an observer in modes of this loop. An invalid observer is ignored and reported to ``trace``. On the
    /// loop's thread.
    ///
    /// - Precondition: the observer is in no other loop.
    public func add(_ observer: Observer, forMode modes: Modes) {
        enrol(observer, modes)
    }
}

@available(*, unavailable, message: "an observer belongs to its loop's thread; give other threads its remote")
extension Observer: Sendable {}
