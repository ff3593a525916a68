internal import Glibc

/// Reports the handler that blocks a loop, while it does.
///
/// The monitor has a thread of its own. When a call of one handler, or a step of a task, has lasted for the threshold,
/// that thread makes the report at once, and does not wait for the handler to return. There is one report per call, and
/// one more when it has ended. A handler that runs the loop nested does not block it. A task is shown by its name and
/// the line where it was started, wherever the step runs. Only jobs of the main actor, outside of a simulation, have no
/// name.
///
/// ```swift
/// let monitor = StallMonitor(loop, threshold: .milliseconds(200)) { stall in
///     print(stall)  // timer "poll" (Daemon/main.swift:12) blocks the loop in default for 0.2 s …
/// }
/// ```
///
/// Keep the monitor: its release ends the watch. Each call of a handler costs two more uncontended locks and two more
/// readings of the clock. The monitor's thread sleeps while the loop does. While the loop is busy, it wakes up four
/// times in the time of the threshold. In a simulation it lives on virtual time, and does nothing unless a call takes
/// time, as with `Simulation.spend(_:)`. A loop has one monitor at a time: a new one replaces the previous one. A
/// monitor belongs to its loop's thread and is not `Sendable`.
public final class StallMonitor {
    /// A call that blocks its loop.
    public struct Stall: Sendable, Hashable, CustomStringConvertible {
        /// The kind of the handler.
        public let kind: RunLoop.ItemKind
        /// The handler's name, if it has one.
        public let name: String?
        /// The file and line that made the handler.
        public let origin: RunLoop.Origin
        /// The mode in which the loop runs.
        public let mode: RunLoop.Mode
        /// The duration of the call so far.
        public let duration: Duration
        /// The time that the thread has spent computing since the monitor first saw the call. It spent the rest
        /// waiting.
        public let cpuTime: Duration
        /// A Boolean value that indicates whether the call has ended by now.
        public let isOver: Bool

        public var description: String {
            let verb = isOver ? "blocked" : "blocks"
            return "\(kind.title(name, origin)) \(verb) the loop in \(mode) for \(duration), \(cpuTime) of it computing"
        }
    }

    private let thread: LoopThread
    private let record: DispatchRecord
    private weak let loop: RunLoop?

    /// Begins to watch a loop. Call it on the loop's thread.
    ///
    /// - Parameters:
    ///   - loop: the loop.
    ///   - threshold: the duration beyond which a call is reported, above zero.
    ///   - report: called on the monitor's thread. Keep it quick: the monitor does not look while it runs.
    public init(_ loop: RunLoop, threshold: Duration, report: @escaping @Sendable (Stall) -> Void) {
        loop.checkThread()
        require(threshold > .zero, "the threshold of a stall is longer than zero, not \(threshold)")
        let record = DispatchRecord(isVirtual: loop.isVirtual)
        self.record = record
        self.loop = loop
        loop.replaceWatcher(by: record) { $0 is DispatchRecord }
        thread = LoopThread(name: "stalls", in: loop.world, isService: true) { loop in
            let watch = Watch(record, threshold, on: loop, report)
            let source = CustomSource { _ in watch.look() }
            loop.add(source, forMode: .default)
            record.watch { [remote = source.remote] in remote.signal() }
            watch.look()
        }
    }

    deinit {
        thread.stop()
        loop?.follow { $0.change(record, isRemoved: true) }
    }
}

@available(*, unavailable, message: "a monitor belongs to its loop's thread")
extension StallMonitor: Sendable {}

/// The state of the watching thread, which owns it.
private final class Watch {
    private let record: DispatchRecord
    private let threshold: Duration
    private unowned let loop: RunLoop
    private let report: @Sendable (StallMonitor.Stall) -> Void
    /// The unfinished call that was seen last, with the thread's computing time when it was first seen.
    private var seen: Seen?
    private var lastCount: UInt64 = 0
    private var nextLook: DelayedCall?

    init(
        _ record: DispatchRecord, _ threshold: Duration, on loop: RunLoop,
        _ report: @escaping @Sendable (StallMonitor.Stall) -> Void
    ) {
        (self.record, self.threshold, self.loop, self.report) = (record, threshold, loop, report)
    }

    func look() {
        nextLook?.cancel()
        nextLook = nil
        var stalls: [StallMonitor.Stall] = []
        var next: RunLoop.Instant?
        record.look { current, count, end in
            let now = loop.now
            if let seen, seen.isReported, let end { stalls.append(stall(seen, at: end, isOver: true)) }
            if end != nil { seen = nil }
            guard let call = current else {
                seen = nil
                defer { lastCount = count }
                guard !record.isVirtual, count != lastCount else { return .call }
                next = now + threshold / 4
                return .nothing
            }
            if seen?.call.number != call.number || seen?.call.begin != call.begin {
                seen = (call, cpuTime, isReported: false)
            }
            let due = call.begin + threshold
            if !seen!.isReported && now >= due {
                seen!.isReported = true
                stalls.append(stall(seen!, at: now, isOver: false))
            }
            if !seen!.isReported { next = due }
            return seen!.isReported || record.isVirtual ? .end(of: call.number) : .nothing
        }
        for stall in stalls { report(stall) }
        nextLook = next.map { loop.perform(at: $0) { [unowned self] in look() } }
    }

    private typealias Seen = (call: DispatchRecord.Call, cpuTime: Duration, isReported: Bool)

    private func stall(_ seen: Seen, at now: RunLoop.Instant, isOver: Bool) -> StallMonitor.Stall {
        let (call, callee) = (seen.call, seen.call.callee)
        return StallMonitor.Stall(
            kind: callee.kind, name: callee.name, origin: callee.origin, mode: call.mode, duration: now - call.begin,
            cpuTime: cpuTime - seen.cpuTime, isOver: isOver)
    }

    private var cpuTime: Duration {
        var clock = clockid_t()
        var time = timespec()
        guard pthread_getcpuclockid(record.thread, &clock) == 0, clock_gettime(clock, &time) == 0 else { return .zero }
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
}
