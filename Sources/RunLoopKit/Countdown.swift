@_spi(Ports) public import RunLoopCore

/// Counts seconds down in whatever mode its loop runs: "send the code again in 60 s".
///
/// ```swift
/// let countdown = Countdown(from: 60, pausing: .continuing) { countdown in
///     print(countdown.remaining == 0 ? "Send again" : "Send again in \(countdown.remaining!) s")
/// }
/// countdown.resume()
/// ```
///
/// The first tick comes at once, and then one comes every interval. A busy loop loses no time: its next tick takes off
/// all intervals that have passed. Keep the countdown: it stops when it is released. A countdown belongs to its loop's
/// thread and is not `Sendable`.
public final class Countdown {
    /// The effect of ``pause()`` and ``resume()`` on the current interval.
    public enum Pausing: Sendable {
        /// The interval is dropped: `resume()` ticks at once and begins a new grid, even when the countdown is running.
        case restarting
        /// The interval is kept: `resume()` continues where the pause began, and does nothing when the countdown is
        /// running.
        case continuing
    }

    /// The effect of a pause on the current interval.
    public let pausing: Pausing

    /// The time between ticks.
    public let interval: Duration

    /// The number of intervals left: zero once the countdown has finished, and `nil` if it counts without end.
    public private(set) var remaining: Int?

    /// A Boolean value that indicates whether the countdown was resumed, and has neither been paused nor finished
    /// since.
    public var isRunning: Bool { source != nil }

    /// The file and line that made the countdown.
    public let origin: RunLoop.Origin

    private let count: Int?
    private let loop: RunLoop
    private let tick: (Countdown) -> Void
    private var source: TimerSource?
    /// The date of the next tick; `nil` before the first resume.
    private var next: RunLoop.Instant?
    /// The time left until the next tick when the pause began; negative if a busy loop had not got to the tick yet.
    private var rest: Duration?
    /// Set if the next tick begins a grid and only reports the rest: no interval has passed.
    private var announces = true

    /// Creates a countdown of the calling thread's loop that waits for ``resume()``.
    ///
    /// - Parameters:
    ///   - count: the number of intervals to count down, not negative; `nil` to tick without end.
    ///   - interval: the time between ticks, above zero. The default is a second.
    ///   - pausing: the effect of a pause on the current interval.
    ///   - tick: called at every tick on the loop's thread, with ``remaining`` up to date. Kept as long as the
    ///     countdown.
    @available(*, noasync, message: "it asks the thread for its loop; give it loop: loop")
    public convenience init(
        from count: Int? = nil, interval: Duration = .seconds(1), pausing: Pausing,
        tick: @escaping (Countdown) -> Void, file: StaticString = #fileID, line: UInt32 = #line
    ) {
        self.init(
            from: count, interval: interval, loop: .current, pausing: pausing, tick: tick, file: file, line: line)
    }

    /// Creates a countdown of the given loop, and otherwise like the initializer without a loop.
    public init(
        from count: Int? = nil, interval: Duration = .seconds(1), loop: RunLoop, pausing: Pausing,
        tick: @escaping (Countdown) -> Void, file: StaticString = #fileID, line: UInt32 = #line
    ) {
        require(count ?? 0 >= 0, "a countdown cannot begin below zero; it was to begin at \(count ?? 0)")
        require(interval > .zero, "a countdown needs an interval above zero; it was given \(interval)")
        self.count = count
        remaining = count
        self.interval = interval
        self.loop = loop
        self.pausing = pausing
        self.tick = tick
        origin = RunLoop.Origin(file: file, line: line)
    }

    /// Starts the countdown, or continues after a pause as ``pausing`` determines. Does nothing once it has finished.
    /// On the loop's thread.
    public func resume() {
        guard remaining != 0 || announces else { return tellIgnored("has finished") }
        if isRunning {
            guard pausing == .restarting else { return tellIgnored("is running") }
            stop()
        }
        guard let rest, pausing == .continuing else {
            announces = true
            return start(at: loop.now)
        }
        // A date that has passed keeps its phase, and the time that passed before the pause is taken off.
        start(at: loop.now + rest)
    }

    private func tellIgnored(_ why: String) {
        loop.emit(.ignored("the countdown (\(origin)) was resumed, but it \(why)"))
    }

    private func start(at date: RunLoop.Instant) {
        let source = TimerSource(queue: .loop(loop.remote), name: "countdown", origin: origin)
        source.setEventHandler(on: loop) { [weak self] in self?.pass($0.data) }
        next = date
        rest = nil
        self.source = source
        source.schedule(deadline: date, repeating: interval)
        source.activate()
    }

    private func pass(_ dates: Int) {
        let intervals = dates - (announces ? 1 : 0)
        announces = false
        next = next.map { $0 + interval * dates }
        remaining = remaining.map { max(0, $0 - intervals) }
        if remaining == 0 { stop() }
        tick(self)
    }

    private func stop() {
        source?.cancel()
        source = nil
    }

    /// Stops the ticks until ``resume()``. On the loop's thread.
    public func pause() {
        guard isRunning else { return }
        rest = next.map { $0 - loop.now }
        stop()
    }

    /// Stops the countdown, and begins again from the full count at the next ``resume()``. On the loop's thread.
    public func reset() {
        stop()
        remaining = count
        rest = nil
        announces = true
    }
}

@available(*, unavailable, message: "a countdown belongs to its loop's thread")
extension Countdown: Sendable {}
