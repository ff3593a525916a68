internal import Glibc

/// Reports which handler blocks a loop, while it happens.
///
/// A thread of its own looks at the loop. When a call of one handler has lasted for the threshold, that thread makes
/// the report at once, and does not wait for the handler to return. There is one report per call, and one more when it
/// has ended. A handler that runs the loop nested does not block it.
///
/// ```swift
/// let monitor = StallMonitor(loop, threshold: .milliseconds(200)) { stall in
///     print(stall)  // timer "poll" (Daemon/main.swift:12) blocks the loop in default for 0.2 s …
/// }
/// ```
///
/// Keep the monitor: when it goes, it stops looking. While it looks, each call of a handler costs two more uncontended
/// locks and two more readings of the clock. In a simulation it lives on virtual time. A loop has one monitor at a
/// time: a new one replaces the one before. A monitor belongs to its loop's thread and is not `Sendable`.
public final class StallMonitor {
    /// A call that blocks its loop.
    public struct Stall: Sendable, Hashable, CustomStringConvertible {
        /// What is called.
        public let kind: RunLoop.ItemKind
        /// The name that it was given.
        public let name: String?
        /// Where it was made.
        public let origin: RunLoop.Origin
        /// The mode that the loop runs in.
        public let mode: RunLoop.Mode
        /// How long the call has lasted.
        public let duration: Duration
        /// How much time the thread has spent computing since the monitor first saw the call. It spent the rest
        /// waiting.
        public let cpuTime: Duration
        /// Whether the call has ended by now.
        public let isOver: Bool

        public var description: String {
            let who = "\(kind)" + (name.map { " \"\($0)\"" } ?? "")
            let verb = isOver ? "blocked" : "blocks"
            return "\(who) (\(origin)) \(verb) the loop in \(mode) for \(duration), \(cpuTime) of it computing"
        }
    }

    private let watcher: Watcher
    private let record: DispatchRecord
    private weak let loop: RunLoop?

    /// Begins to watch a loop. Call it on the loop's thread.
    ///
    /// - Parameters:
    ///   - loop: the loop.
    ///   - threshold: how long a call may last, above zero. The monitor looks four times as often.
    ///   - report: called on the monitor's thread. Keep it quick: while it runs the monitor does not look.
    public init(
        _ loop: RunLoop, threshold: Duration, report: @escaping @Sendable (Stall) -> Void
    ) {
        loop.checkThread()
        require(threshold > .zero, "a stall is a call that lasts longer than something; the threshold is \(threshold)")
        record = DispatchRecord()
        self.loop = loop
        loop.record = record
        watcher = Watcher(record, threshold, loop.world, report)
    }

    deinit {
        watcher.stop()
        if loop?.record === record { loop?.record = nil }
    }
}

@available(*, unavailable, message: "a monitor belongs to its loop's thread")
extension StallMonitor: Sendable {}

/// The thread that looks.
private final class Watcher: Sendable {
    private let thread: LoopThread

    init(
        _ record: DispatchRecord, _ threshold: Duration, _ world: any World,
        _ report: @escaping @Sendable (StallMonitor.Stall) -> Void
    ) {
        thread = LoopThread(name: "stalls", in: world, isService: true) { loop in
            var sight: Sight?
            let timer = Timer(fire: loop.now + threshold / 4, interval: threshold / 4, repeats: true) {
                [unowned loop] _ in
                let call = record.current
                if let seen = sight, seen.isReported, call?.number != seen.call.number {
                    report(seen.stall(at: seen.last, isOver: true))
                }
                guard let call else { return sight = nil }
                if sight?.call.number != call.number { sight = Sight(call, record.thread) }
                sight!.last = loop.now
                guard !sight!.isReported, loop.now - call.begin >= threshold else { return }
                sight!.isReported = true
                report(sight!.stall(at: loop.now, isOver: false))
            }
            loop.add(timer, forMode: .default)
        }
    }

    func stop() {
        thread.stop()
    }

    /// A call that was seen.
    private struct Sight {
        let call: DispatchRecord.Call
        let thread: pthread_t
        let cpuTime: Duration
        var last: RunLoop.Instant
        var isReported = false

        init(_ call: DispatchRecord.Call, _ thread: pthread_t) {
            self.call = call
            self.thread = thread
            cpuTime = Sight.cpuTime(of: thread)
            last = call.begin
        }

        func stall(at now: RunLoop.Instant, isOver: Bool) -> StallMonitor.Stall {
            StallMonitor.Stall(
                kind: call.kind, name: call.name, origin: call.origin, mode: call.mode, duration: now - call.begin,
                cpuTime: Sight.cpuTime(of: thread) - cpuTime, isOver: isOver)
        }

        static func cpuTime(of thread: pthread_t) -> Duration {
            var clock = clockid_t()
            var time = timespec()
            guard pthread_getcpuclockid(thread, &clock) == 0, clock_gettime(clock, &time) == 0 else { return .zero }
            return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
        }
    }
}
