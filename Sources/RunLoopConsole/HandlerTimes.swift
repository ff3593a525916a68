internal import RunLoopKit

/// How a loop spends its time, from the events that its recorder has written.
struct HandlerTimes {
    /// The time from one look to the next.
    struct Window {
        var length = Duration.zero
        /// How long the loop slept.
        var sleep = Duration.zero
        var handlers: [Flight.Handler?: Sum] = [:]
        /// The innermost call, and when it began, if the loop waits for its return.
        var call: (handler: Flight.Handler?, begin: RunLoop.Instant)?
    }

    struct Sum: Equatable {
        var calls = 0
        /// Without the calls and sleeps that were nested in them.
        var time = Duration.zero
        var longest = Duration.zero
    }

    private enum Frame {
        case call(Flight.Handler?, begin: RunLoop.Instant)
        /// A run of the loop in a call.
        case run
    }

    private var frames: [(frame: Frame, depth: Int)] = []
    private var window = Window()
    private var begin: RunLoop.Instant
    /// Until when the time has been counted.
    private var last: RunLoop.Instant

    init(at now: RunLoop.Instant) {
        (begin, last) = (now, now)
    }

    /// Reads the events that were written since the last look.
    mutating func read(_ entries: some Sequence<Flight.Entry>) {
        for entry in entries {
            var slept = Duration.zero
            if case .slept(let duration, _) = entry.event { slept = duration }
            count(until: entry.time, slept: slept)
            switch entry.event {
            case .callBegan(let handler, _):
                // A call that is as deep has ended, and the event of its end is lost.
                close(from: entry.depth)
                frames.append((.call(handler, begin: entry.time), entry.depth))
                window.handlers[handler, default: Sum()].calls += 1
            case .callEnded(let duration):
                if case .call(let handler, _)? = frames.last(where: { $0.depth == entry.depth })?.frame {
                    let longest = window.handlers[handler, default: Sum()].longest
                    window.handlers[handler, default: Sum()].longest = max(longest, duration)
                }
                close(from: entry.depth)
            case .runBegan: frames.append((.run, entry.depth))
            case .runEnded:
                if case .run? = frames.last?.frame { frames.removeLast() }
            default: continue
            }
        }
    }

    /// Ends the calls that are as deep as that or deeper, and the runs in them.
    private mutating func close(from depth: Int) {
        while let (frame, last) = frames.last {
            if case .run = frame, last <= depth { return }
            if last < depth { return }
            frames.removeLast()
        }
    }

    private mutating func count(until time: RunLoop.Instant, slept: Duration) {
        let elapsed = max(.zero, time - last)
        last = max(last, time)
        let sleep = min(slept, elapsed)
        window.sleep += sleep
        for case .call(let handler, _) in frames.reversed().lazy.map(\.frame) {
            window.handlers[handler, default: Sum()].time += elapsed - sleep
            break
        }
    }

    /// Ends the window, and begins the next one.
    ///
    /// - Parameter isAsleep: whether the loop sleeps now, in which case it has since the last event.
    mutating func take(at now: RunLoop.Instant, isAsleep: Bool) -> Window {
        count(until: now, slept: isAsleep ? .seconds(Int64.max / 4_000_000_000) : .zero)
        for case .call(let handler, let begin) in frames.lazy.map(\.frame) {
            let longest = window.handlers[handler, default: Sum()].longest
            window.handlers[handler, default: Sum()].longest = max(longest, now - begin)
        }
        if case .call(let handler, let begin)? = frames.last?.frame { window.call = (handler, begin) }
        window.length = now - begin
        defer { (window, begin) = (Window(), now) }
        return window
    }
}
