public import Logging
public import RunLoopKit

extension RunLoop {
    /// Logs what the loop does: runs, fires, deliveries and frames. Takes the place of ``RunLoopCore/RunLoop/trace``.
    ///
    /// What was asked and is ignored as documented, as adding a timer that is invalid, is logged as a notice. On the
    /// loop's thread. Each event costs what the logger makes of it, on the loop's thread.
    ///
    /// - Parameters:
    ///   - logger: the logger; messages carry the loop's mode as metadata.
    ///   - level: the level of everything else.
    public func log(to logger: Logger, level: Logger.Level = .trace) {
        // Weak: a loop that ends may still ignore something.
        trace = { [weak self] event in
            let isIgnored = if case .ignored = event { true } else { false }
            logger.log(
                level: isIgnored ? .notice : level, "\(event)",
                metadata: self?.currentMode.map { ["mode": "\($0)"] })
        }
    }
}

extension StallMonitor {
    /// Begins to watch a loop, and logs stalls. On the loop's thread.
    ///
    /// - Parameters:
    ///   - loop: the loop.
    ///   - threshold: how long a call may last, above zero.
    ///   - logger: called on the monitor's thread. The kind, the name, the place, the mode and the times of a stall are
    ///     metadata, too.
    ///   - level: the level of the messages.
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
