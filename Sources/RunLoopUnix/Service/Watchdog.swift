public import RunLoopKit

/// Tells the service manager that the loop makes progress, twice in each of its watchdog's periods.
///
/// The sign of life is sent by a timer of the loop, in the modes that are given, and by nothing else. So it stays out
/// - while a handler does not return, whatever it waits for;
/// - while the loop runs in other modes than the given ones, as in a nested run that does not end;
/// - while the loop's thread does not run it at all;
/// - while ``isHealthy`` says no.
///
/// A loop that sleeps because nothing is due is well: the timer wakes it. What is not seen: a loop that goes round
/// without getting anywhere, as when the same error comes in every pass, and whatever other threads do. For such there
/// is ``isHealthy``.
///
/// The loop keeps the watchdog until it is invalidated. It belongs to its loop's thread.
public final class Watchdog {
    /// The time between signs of life: half of the manager's period.
    public let interval: Duration

    /// How often the manager was told.
    public private(set) var feedings = 0

    /// Asked before each sign of life, which is sent only if the answer is yes; for what the application knows better
    /// than its loop. It is to answer at once.
    public var isHealthy: (() -> Bool)?

    /// Called when the manager could not be told. The watchdog tries again an interval later.
    public var errorHandler: ((ServiceManagerError) -> Void)?

    private let manager: ServiceManager
    private weak var timer: Timer?

    /// Begins to feed the manager's watchdog; the first time half a period from now.
    ///
    /// - Parameters:
    ///   - manager: the service manager.
    ///   - loop: the calling thread's loop, whose progress is shown.
    ///   - modes: the modes in which it counts as progress that the loop runs.
    /// - Returns: `nil` if the manager does not ask for signs of life, or cannot be told.
    public init?(_ manager: ServiceManager, loop: RunLoop, modes: RunLoop.Modes = .common) {
        guard let period = manager.watchdogPeriod, manager.isPresent else { return nil }
        self.manager = manager
        interval = period / 2
        let timer = Timer(fire: loop.now + interval, interval: interval, repeats: true) { _ in self.feed() }
        timer.name = "watchdog"
        loop.add(timer, forMode: modes)
        self.timer = timer
    }

    /// Whether signs of life are still sent.
    public var isValid: Bool { timer?.isValid == true }

    /// Sends no more signs of life; the manager will act. On its loop's thread; harmless when repeated.
    public func invalidate() {
        timer?.invalidate()
    }

    private func feed() {
        guard isHealthy?() != false else { return }
        do {
            try manager.feedWatchdog()
            feedings += 1
        } catch {
            errorHandler?(error)
        }
    }
}

@available(*, unavailable, message: "a watchdog belongs to its loop's thread")
extension Watchdog: Sendable {}
