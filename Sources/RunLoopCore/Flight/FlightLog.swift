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

    /// A handler is about to be called. The clock is not read for that: nothing but the loop itself has run since the last
    /// event, or since the pass read it.
    func callBegins(
        _ kind: RunLoop.ItemKind, _ name: String?, _ origin: RunLoop.Origin, in mode: RunLoop.Mode,
        passTime: RunLoop.Instant, latenesses known: (count: Int, sum: Int64)
    ) {
        last = max(last, passTime)
        let lateness = lateness(of: kind, after: known)
        write(
            FlightEvent(
                .callBegan, at: last, name: names.number(of: kind, name, origin), mode: names.number(of: mode),
                depth: begins.count, value: lateness ?? FlightEvent.noLateness))
        begins.append(last)
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
        write(
            FlightEvent(.callEnded, at: now, mode: 0, depth: begins.count, value: now.nanoseconds &- begin.nanoseconds))
    }

    func runBegins(in mode: RunLoop.Mode, at now: RunLoop.Instant) {
        last = now
        write(FlightEvent(.runBegan, at: now, mode: names.number(of: mode), depth: begins.count))
    }

    func runEnds(in mode: RunLoop.Mode, at now: RunLoop.Instant) {
        last = now
        write(FlightEvent(.runEnded, at: now, mode: names.number(of: mode), depth: begins.count))
    }

    /// The loop has slept since the last event.
    func wokeUp(in mode: RunLoop.Mode, at now: RunLoop.Instant) {
        let slept = now.nanoseconds &- last.nanoseconds
        last = now
        write(FlightEvent(.slept, at: now, mode: names.number(of: mode), depth: begins.count, value: slept))
    }
}
