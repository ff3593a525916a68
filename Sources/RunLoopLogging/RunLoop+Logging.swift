#if Adapters
public import Logging
public import RunLoopKit

extension RunLoop {
    /// Logs the activity of the loop: runs, fires, deliveries and frames. Replaces the value of
    /// ``/RunLoopKit/RunLoop/trace``.
    ///
    /// Requests that the loop ignores, such as adding an invalid timer, are logged as notices. Call this on the loop's
    /// thread; the logger is called there too, so each event costs the loop the time of the logger.
    ///
    /// - Parameters:
    ///   - logger: the logger; messages carry the loop's mode as metadata.
    ///   - level: the level of all other messages; by default `trace`.
    public func log(to logger: Logger, level: Logger.Level = .trace) {
        // Weak, because a loop that is ending may still ignore requests.
        trace = { [weak self] event in
            let isIgnored = if case .ignored = event { true } else { false }
            logger.log(
                level: isIgnored ? .notice : level, "\(event)",
                metadata: self?.currentMode.map { ["mode": "\($0)"] })
        }
    }
}

extension StallMonitor {
    /// Creates a monitor that logs the stalls of a loop. Call it on the loop's thread.
    ///
    /// - Parameters:
    ///   - loop: the loop.
    ///   - threshold: how long a call may last, above zero.
    ///   - logger: called on the monitor's thread. A message carries the stall's kind, name, place, mode and times as
    ///     metadata.
    ///   - level: the level of the messages; by default `warning`.
    public convenience init(_ loop: RunLoop, threshold: Duration, logger: Logger, level: Logger.Level = .warning) {
        self.init(loop, threshold: threshold) { stall in
            logger.log(
                level: level, "\(stall)",
                metadata: [
                    "kind": "\(stall.kind)", "name": "\(stall.name ?? "")", "origin": "\(stall.origin)",
                    "mode": "\(stall.mode)", "duration": "\(stall.duration)", "cpuTime": "\(stall.cpuTime)",
                    "isOver": "\(stall.isOver)",
                ])
        }
    }
}
#else
public import RunLoopKit

extension RunLoop {
    @available(*, unavailable, message: "RunLoopLogging needs the trait Adapters: .package(…, traits: [\"Adapters\"])")
    public func log<Logger>(to logger: Logger) {}
}

extension StallMonitor {
    @available(*, unavailable, message: "RunLoopLogging needs the trait Adapters: .package(…, traits: [\"Adapters\"])")
    public convenience init<Logger>(_ loop: RunLoop, threshold: Duration, logger: Logger) { fatalError() }
}
#endif
