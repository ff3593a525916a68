public import RunLoopKit

/// A reporter that notifies the service manager of the loop's progress, twice in each period of the manager's watchdog.
///
/// Only a timer of the loop, in the given modes, sends the signs of life. None is sent
/// - while a handler does not return, for any reason;
/// - while the loop runs in another mode, for example in a nested run that does not end;
/// - while the loop's thread does not run the loop at all;
/// - while another watched loop, such as one of a ``LoopGroup``, does not answer for any of these reasons;
/// - while ``isHealthy`` returns `false`.
///
/// A loop that sleeps because nothing is due is healthy: the timer wakes it. The watchdog does not notice stalled
/// threads without a loop, or a loop whose passes make no progress, for example because the same error recurs in every
/// pass. Check such conditions in ``isHealthy``.
///
/// The loop keeps the watchdog until you invalidate it, or until a ``Daemon`` of the loop with the same manager has
/// stopped, because a program about to exit gives no signs of life. A watchdog belongs to its loop's thread and is not
/// `Sendable`.
public final class Watchdog {
    /// The time between signs of life: half of the manager's period.
    public let interval: Duration

    /// The number of signs of life that were sent.
    public private(set) var feedingCount = 0

    /// Called before each sign of life, which is sent only if the closure returns `true`, to check conditions of the
    /// application. Return at once.
    public var isHealthy: (() -> Bool)?

    /// Called when a sign of life could not be sent, once until one is sent or the error changes. The watchdog tries
    /// again every interval. If `nil`, the default, ``/RunLoopKit/RunLoop/trace`` receives the error.
    public var errorHandler: ((Watchdog, ServiceManagerError) -> Void)?

    private let manager: ServiceManager
    private let loop: RunLoop
    private let modes: RunLoop.Modes
    private let others: [RunLoop.Remote]
    /// True if every other loop has made a pass since it was asked to.
    private var haveOthersAnswered = true
    /// True while a due sign of life waits for answers.
    private var isLate = false
    private var lastError: ServiceManagerError?
    private weak var timer: Timer?
    /// The watchdogs of a loop.
    private static let ofLoop = RunLoop.Local<[Watchdog]> { _ in [] }

    /// Starts feeding the manager's watchdog, first after half a period.
    ///
    /// - Parameters:
    ///   - manager: the service manager.
    ///   - loop: the calling thread's loop, whose progress is reported.
    ///   - modes: the modes in which running the loop counts as progress.
    ///   - others: loops of other threads that must also make progress in the same modes. A loop that has ended is
    ///     ignored.
    /// - Returns: `nil` if the manager does not expect signs of life, or cannot be reached.
    public init?(
        _ manager: ServiceManager, loop: RunLoop, inModes modes: RunLoop.Modes = .common,
        watching others: [RunLoop.Remote] = []
    ) {
        guard let period = manager.watchdogPeriod, manager.isPresent else { return nil }
        (self.manager, self.loop, self.modes, self.others) = (manager, loop, modes, others)
        interval = period / 2
        let timer = Timer(fire: loop.now + interval, interval: interval, repeats: true) { _ in
            self.isLate = true
            self.feed()
        }
        timer.name = "watchdog"
        loop.add(timer, forMode: modes)
        self.timer = timer
        loop[Self.ofLoop].append(self)
        askOthers()
    }

    /// A Boolean value that indicates whether signs of life are still sent.
    public var isValid: Bool { timer?.isValid == true }

    /// Stops the signs of life, so that the manager will act. Call it on the loop's thread; repeated calls have no
    /// effect.
    public func invalidate() {
        timer?.invalidate()
        loop[Self.ofLoop].removeAll { $0 === self }
    }

    /// Invalidates the watchdogs of a loop for a manager, because the service has stopped.
    static func serviceHasStopped(_ manager: ServiceManager, on loop: RunLoop) {
        for watchdog in loop[ofLoop] where watchdog.manager === manager { watchdog.invalidate() }
    }

    /// Asks the other loops to make a pass.
    private func askOthers() {
        assert(haveOthersAnswered, "the other loops are asked twice")
        guard !others.isEmpty else { return }
        haveOthersAnswered = false
        let own = LoopBound(self, loop: loop)
        let answers = AtLast(others.count) { [modes] in
            own.remote.perform(inModes: modes) { _ in own.value.othersHaveAnswered() }
        }
        for other in others {
            let answer = answers.makeEnd()
            other.perform(inModes: modes) { _ in answer.come() }
        }
    }

    private func othersHaveAnswered() {
        haveOthersAnswered = true
        if isLate && isValid { feed() }
    }

    /// Sends the due sign of life. If another loop has not answered, the last answer sends it.
    private func feed() {
        assert(interval > .zero, "a watchdog is fed all the time")
        guard haveOthersAnswered else { return }
        isLate = false
        askOthers()
        guard isHealthy?() != false else { return }
        do {
            try manager.feedWatchdog()
            feedingCount += 1
            lastError = nil
        } catch {
            guard error != lastError else { return }
            lastError = error
            if let errorHandler { return errorHandler(self, error) }
            loop.emit(.ignored("the watchdog is not fed: \(error)"))
        }
    }
}

@available(*, unavailable, message: "a watchdog belongs to its loop's thread")
extension Watchdog: Sendable {}
