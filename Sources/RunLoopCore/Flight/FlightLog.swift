internal import Synchronization

/// Writes the events of a loop. It belongs to the loop's thread.
final class FlightLog {
    let memory: FlightMemory
    private var names: FlightNames
    // Unchecked, as the state of the loop that every call touches.
    @exclusivity(unchecked) private var written: UInt64 = 0
    /// When the calls that are under way began, the innermost last.
    @exclusivity(unchecked) private var begins: [RunLoop.Instant] = []
    /// The latenesses that were known when the last call began: a difference of one is that of the next call. So the loop
    /// need not hand it over, which would cost each pass without a recorder five instructions.
    @exclusivity(unchecked) private var latenesses: (count: Int, sum: Int64)
    /// The time of the last event.
    @exclusivity(unchecked) private var last: RunLoop.Instant

    init(_ memory: FlightMemory, at now: RunLoop.Instant, latenesses: (count: Int, sum: Int64)) {
        (self.memory, last) = (memory, now)
        self.latenesses = latenesses
        names = FlightNames(memory)
        begins.reserveCapacity(64)
    }

    private func write(_ event: FlightEvent) {
        memory.write(event, number: written)
        written += 1
    }

    // MARK: Calls

    /// A handler is about to be called. The clock is not read for that: nothing but the loop itself has run since the last
    /// event, or since the pass read it.
    func callBegins(
        _ callee: Callee, in mode: RunLoop.Mode, passTime: RunLoop.Instant,
        latenesses known: (count: Int, sum: Int64)
    ) {
        last = max(last, passTime)
        let lateness = lateness(of: callee.kind, after: known)
        let value = callee.kind.isOfTasks ? Int64(bitPattern: callee.number) : lateness ?? FlightEvent.noLateness
        write(
            FlightEvent(
                .callBegan, at: last, name: names.number(of: callee), mode: names.number(of: mode),
                depth: begins.count, value: value))
        begins.append(last)
        FlightProbes.callBegins(callee, lateness)
        if callee.kind.hasDate, callee.number != 0 { callHas(number: callee.number, from: nil) }
    }

    /// The call that has just begun is the effect of that number.
    func callHas(number: UInt64, from thread: ThreadName?) {
        let name = thread.map { names.number(of: $0) } ?? 0
        write(
            FlightEvent(
                .callHas, at: last, name: name, depth: max(0, begins.count - 1), value: Int64(bitPattern: number)))
    }

    private func lateness(of kind: RunLoop.ItemKind, after known: (count: Int, sum: Int64)) -> Int64? {
        let before = latenesses
        latenesses = known
        guard kind.hasDate, known.count == before.count + 1 else { return nil }
        return known.sum &- before.sum
    }

    func callEnds(at now: RunLoop.Instant) {
        guard let begin = begins.popLast() else { return }
        last = now
        let duration = now.nanoseconds &- begin.nanoseconds
        write(FlightEvent(.callEnded, at: now, depth: begins.count, value: duration))
        FlightProbes.callEnds(after: duration)
    }

    func runBegins(in mode: RunLoop.Mode, at now: RunLoop.Instant) {
        last = now
        write(FlightEvent(.runBegan, at: now, mode: names.number(of: mode), depth: begins.count))
    }

    func runEnds(in mode: RunLoop.Mode, at now: RunLoop.Instant) {
        last = now
        write(FlightEvent(.runEnded, at: now, mode: names.number(of: mode), depth: begins.count))
    }

    // MARK: Causes

    /// Why a sleep has ended.
    enum ReasonToWake {
        case date
        case source(Callee)
        case mail(ThreadName)
        case other
    }

    /// The loop has slept since the last event.
    func wokeUp(in mode: RunLoop.Mode, at now: RunLoop.Instant, by reason: ReasonToWake) {
        let slept = now.nanoseconds &- last.nanoseconds
        last = now
        let (kind, name): (FlightEvent.Kind, UInt32) =
            switch reason {
            case .date: (.sleptUntilDate, 0)
            case .source(let source): (.sleptUntilReady, names.number(of: source))
            case .mail(let thread): (.sleptUntilMail, names.number(of: thread))
            case .other: (.slept, 0)
            }
        write(FlightEvent(kind, at: now, name: name, mode: names.number(of: mode), depth: begins.count, value: slept))
        FlightProbes.sleepEnds(after: slept, by: reason)
    }

    /// The innermost call, or the loop itself, has caused a call. The clock is not read for that.
    func causes(_ callee: Callee) {
        write(
            FlightEvent(
                .caused, at: last, name: names.number(of: callee), depth: begins.count,
                value: Int64(bitPattern: callee.number)))
        FlightProbes.posts(callee)
    }

    /// A number for a post, which no other post of the process has.
    static func numberOfPost() -> UInt64 { lastPost.wrappingAdd(1, ordering: .relaxed).newValue }

    // MARK: Bytes

    /// A connection has moved bytes.
    func moved(_ bytes: Int, _ kind: FlightEvent.Kind, by descriptor: Int32, _ callee: Callee) {
        write(
            FlightEvent(
                kind, at: last, name: names.number(of: callee), depth: begins.count,
                value: FlightEvent.value(bytes: bytes, of: descriptor)))
    }
}

private let lastPost = Atomic<UInt64>(0)
