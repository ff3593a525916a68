internal import RunLoopKit

/// The times that a loop spends in its handlers, from the events that its recorder has written.
struct HandlerTimes {
    /// The time from one look to the next.
    struct Window {
        var length = Duration.zero
        var sleep = Duration.zero
        var handlers: [Flight.Handler?: Sum] = [:]
        /// The innermost call, and its start, if the loop waits for its return.
        var call: (handler: Flight.Handler?, begin: RunLoop.Instant)?
    }

    struct Sum: Equatable {
        var calls = 0
        /// The time of the calls, without the calls and sleeps nested in them.
        var time = Duration.zero
        var longest = Duration.zero
    }

    private struct Frame {
        let depth: Int
        /// The call; `nil` for a run of the loop in a call.
        let call: (handler: Flight.Handler?, begin: RunLoop.Instant)?
    }

    private var frames: [Frame] = []
    private var window = Window()
    private var begin: RunLoop.Instant
    /// The date up to which time has been counted.
    private var last: RunLoop.Instant

    init(at now: RunLoop.Instant) {
        (begin, last) = (now, now)
    }

    /// Reads the events written since the last look.
    mutating func read(_ entries: some Sequence<Flight.Entry>) {
        for entry in entries {
            var slept = Duration.zero
            if case .slept(let duration, _) = entry.event { slept = duration }
            count(until: entry.time, slept: slept)
            switch entry.event {
            case .callBegan(let handler, _):
                // An earlier call of the same depth has ended, and the event of its end is lost.
                close(from: entry.depth)
                frames.append(Frame(depth: entry.depth, call: (handler, entry.time)))
                window.handlers[handler, default: Sum()].calls += 1
            case .callEnded(let duration):
                if let call = frames.last(where: { $0.depth == entry.depth })?.call {
                    let longest = window.handlers[call.handler, default: Sum()].longest
                    window.handlers[call.handler, default: Sum()].longest = max(longest, duration)
                }
                close(from: entry.depth)
            case .runBegan: frames.append(Frame(depth: entry.depth, call: nil))
            case .runEnded:
                if let last = frames.last, last.call == nil { frames.removeLast() }
            default: continue
            }
        }
    }

    /// Ends the calls of that depth or a greater one, and the runs in them.
    private mutating func close(from depth: Int) {
        while let last = frames.last, last.depth > depth || last.depth == depth && last.call != nil {
            frames.removeLast()
        }
    }

    private mutating func count(until time: RunLoop.Instant, slept: Duration) {
        let elapsed = max(.zero, time - last)
        last = max(last, time)
        let sleep = min(slept, elapsed)
        window.sleep += sleep
        if let call = frames.last(where: { $0.call != nil })?.call {
            window.handlers[call.handler, default: Sum()].time += elapsed - sleep
        }
    }

    /// Ends the window, and begins the next one. A loop that sleeps now has slept since the last event.
    mutating func take(at now: RunLoop.Instant, isAsleep: Bool) -> Window {
        count(until: now, slept: isAsleep ? .seconds(Int64.max / 4_000_000_000) : .zero)
        for case let (handler, begin)? in frames.lazy.map(\.call) {
            let longest = window.handlers[handler, default: Sum()].longest
            window.handlers[handler, default: Sum()].longest = max(longest, now - begin)
        }
        window.call = frames.last?.call
        window.length = now - begin
        defer { (window, begin) = (Window(), now) }
        return window
    }
}
