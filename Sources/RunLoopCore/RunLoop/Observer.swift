/// A callback at certain points of every pass.
///
/// Observers do not keep a mode from being empty: a mode with nothing else in it is not run, and they are not called
/// (R10). Source: Apple's page on `CFRunLoopObserver`; R59–R64.
public final class Observer {
    /// The points of a run at which an observer can be called, with CFRunLoop's values (R60).
    public struct Activity: OptionSet, Sendable, Hashable {
        public let rawValue: UInt8

        public init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// Once, when a run begins.
        public static let entry = Activity(rawValue: 1)
        /// In every pass, first of all.
        public static let beforeTimers = Activity(rawValue: 2)
        /// In every pass, after ``beforeTimers``.
        public static let beforeSources = Activity(rawValue: 4)
        /// Only when the loop is about to sleep. An observer, or another thread, may still keep it awake.
        public static let beforeWaiting = Activity(rawValue: 32)
        /// After the sleep that ``beforeWaiting`` announced.
        public static let afterWaiting = Activity(rawValue: 64)
        /// Once, when a run ends.
        public static let exit = Activity(rawValue: 128)
        /// All six.
        public static let all: Activity = [
            .entry, .beforeTimers, .beforeSources, .beforeWaiting, .afterWaiting, .exit,
        ]
    }

    /// When the observer is called.
    public let activities: Activity
    /// Whether it is called again and again; otherwise it is invalidated after its first call (R61).
    public let repeats: Bool
    /// Smaller numbers are called earlier; equal ones in the order in which they were added (R59).
    public let order: Int

    /// A name for reports.
    public var name: String?

    /// Where it was made.
    public let origin: RunLoop.Origin

    /// Whether the observer can still be called.
    public var isValid: Bool { handler != nil }

    private var handler: ((Observer, Activity) -> Void)?
    private var isCalling = false
    var membership = Membership.none
    unowned(unsafe) var loop: RunLoop?

    /// An observer, to be added with ``RunLoop/add(_:forMode:)-(Observer,_)``.
    public init(
        activities: Activity, repeats: Bool = true, order: Int = 0,
        handler: @escaping (Observer, Activity) -> Void, file: StaticString = #fileID, line: UInt32 = #line
    ) {
        self.activities = activities
        self.repeats = repeats
        self.order = order
        origin = RunLoop.Origin(file: file, line: line)
        self.handler = handler
    }

    /// Takes the observer out of its loop for good and lets its handler go. On its loop's thread.
    public func invalidate() {
        loop?.checkThread()
        loop?.setMembership(.none, of: self)
        let handler = self.handler
        self.handler = nil
        withExtendedLifetime(handler) {}
    }

    /// Calls the handler, unless it is on the stack already (R63).
    func call(_ activity: Activity) {
        guard !isCalling, let handler else { return }
        isCalling = true
        handler(self, activity)
        isCalling = false
        if !repeats { invalidate() }
    }
}
