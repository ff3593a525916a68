extension Flight {
    /// The cause of a call: a post, the arming of a timer that fires once, or the waking of a task.
    public struct Cause: Sendable, Hashable {
        /// The handler that was under way; `nil` if it is not known, or if there was none, as when the end of a task's
        /// sleep wakes the task.
        public let handler: Handler?
        /// The time of the cause, on the loop's clock; `nil` if it is not known. Within a handler, the time of the
        /// event before.
        public let time: RunLoop.Instant?
        /// The name of the thread that posted the call, if that was another one.
        public let thread: String?
        /// The number by which flights find the effect.
        let number: UInt64
        /// The index of the handler's call among the calls.
        let call: Int?
    }

    /// A call of a handler.
    public struct Call: Sendable, Hashable {
        /// The handler; `nil` if there was no room for its name.
        public let handler: Handler?
        /// The mode of the run.
        public let mode: String
        /// The time at which the call began.
        public let begin: RunLoop.Instant
        /// The time that the call took; `nil` if it was still under way.
        public internal(set) var duration: Duration?
        /// The time that the calls and sleeps nested in this call took.
        public internal(set) var nested = Duration.zero
        /// The number of calls in which this call is nested.
        public let depth: Int
        /// The time from a timer's date to the start of its call; `nil` for other handlers.
        public let lateness: Duration?
        /// The number of the polled task, unique in the process; `nil` for other handlers.
        public let task: UInt64?
        /// The cause of the call; `nil` if it is not known, as with repeating timers and descriptors.
        public internal(set) var cause: Cause?
    }

    /// Identifies an effect in the flight of a loop.
    struct Effect: Hashable {
        enum Way { case post, timer, call, task }

        let way: Way
        let number: UInt64

        /// Creates the effect of a handler's call; `nil` for a handler whose calls have no numbers.
        init?(_ handler: Handler?, _ number: UInt64) {
            switch handler?.kind {
            case .block: way = .post
            case .delayedCall: way = .call
            case .task, .executor: way = .task
            case let kind? where kind.hasDate: way = .timer
            default: return nil
            }
            guard number != 0 else { return nil }
            self.number = number
        }
    }

    /// The calls of handlers in the order in which they began, except calls whose start is lost. O(events).
    public var calls: [Call] {
        var calls: [Call] = []
        var open: [Int] = []
        var causes: [Effect: Cause] = [:]
        for entry in entries {
            switch entry.event {
            case .callBegan(let handler, let mode):
                // The end of an earlier call of the same depth or a greater one is lost.
                while let last = open.last, calls[last].depth >= entry.depth { open.removeLast() }
                open.append(calls.count)
                var call = Call(
                    handler: handler, mode: mode, begin: entry.time, depth: entry.depth, lateness: entry.lateness,
                    task: entry.task)
                if let effect = Effect(handler, entry.task ?? 0) { call.cause = causes.removeValue(forKey: effect) }
                calls.append(call)
            case .callHas(let number, let thread):
                guard let last = open.last, calls[last].depth == entry.depth,
                    let effect = Effect(calls[last].handler, number)
                else { continue }
                let known = causes.removeValue(forKey: effect)
                guard known != nil || effect.way == .post else { continue }
                calls[last].cause = Cause(
                    handler: known?.handler, time: known?.time, thread: thread, number: number, call: known?.call)
            case .callEnded(let duration):
                guard let last = open.last, calls[last].depth == entry.depth else { continue }
                open.removeLast()
                calls[last].duration = duration
                if let outer = open.last { calls[outer].nested += duration }
            case .slept(let duration, _):
                if let innermost = open.last { calls[innermost].nested += duration }
            case .caused(let handler, let number):
                guard let effect = Effect(handler, number) else { continue }
                while let last = open.last, calls[last].depth >= entry.depth { open.removeLast() }
                causes[effect] = Cause(
                    handler: open.last.flatMap { calls[$0].handler }, time: entry.time, thread: nil, number: number,
                    call: open.last)
            case .runBegan, .runEnded, .moved: continue
            }
        }
        return calls
    }
}

extension [Flight.Call] {
    /// The time of the ended calls together, without the calls and sleeps nested in them.
    var ownTime: Duration { reduce(.zero) { sum, call in call.duration.map { sum + ($0 - call.nested) } ?? sum } }

    var longest: Duration { reduce(.zero) { Swift.max($0, $1.duration ?? .zero) } }
}
