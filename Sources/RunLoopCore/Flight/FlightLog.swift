internal import Synchronization

/// Writes the events of a loop. On the loop's thread.
final class FlightLog {
    let memory: FlightMemory
    /// The log's number, unique in the process.
    let number = lastLog.wrappingAdd(1, ordering: .relaxed).newValue
    // Unchecked, like the state of the loop that every call accesses.
    @exclusivity(unchecked) private var names: FlightNames
    @exclusivity(unchecked) private var writer: FlightMemory.Writer
    /// The start times of the calls under way, the innermost last.
    @exclusivity(unchecked) private var begins = Begins()
    /// The latenesses known when the last call began. If the next call finds one more, the difference is its lateness:
    /// the loop need not pass it, which would cost each pass without a recorder five instructions.
    private var latenesses: (count: Int, sum: Int64)
    /// The time of the last event.
    private var last: RunLoop.Instant
    /// Set if the recorder has gone. Connections may still refer to the log.
    private var isOver = false
    /// The connection that has moved bytes since the last event, which are not written yet: a handler that reads and
    /// answers is one event. The meter's deinit calls ``willLose(_:)``.
    private var moved: UnownedReference<FlightMeter>?

    init(_ memory: FlightMemory, at now: RunLoop.Instant, latenesses: (count: Int, sum: Int64)) {
        (self.memory, last) = (memory, now)
        self.latenesses = latenesses
        names = FlightNames(memory)
        writer = FlightMemory.Writer(memory)
    }

    /// Writes an event with the time of the last one.
    @inline(__always)
    private func write(_ kind: FlightEvent.Kind, name: UInt32 = 0, mode: UInt16 = 0, value: Int64 = 0) {
        writer.write(FlightEvent(kind, at: last, name: name, mode: mode, depth: begins.count, value: value))
    }

    func end() {
        if moved != nil { writeMoved() }
        isOver = true
    }

    // MARK: Calls

    /// Notes that a handler is about to be called. The clock is not read: nothing but the loop itself has run since the
    /// last event, or since the pass read it.
    func callBegins(
        _ callee: RunLoop.Callee, in mode: RunLoop.Mode, passTime: RunLoop.Instant,
        latenesses known: (count: Int, sum: Int64)
    ) {
        let lateness = lateness(of: callee.kind, after: known)
        let value = callee.kind.isOfTasks ? Int64(bitPattern: callee.number) : lateness ?? FlightEvent.noLateness
        callBegins(names.number(of: callee), mode, passTime, value)
        FlightProbes.callBegins(callee, lateness)
        if callee.kind.hasDate, callee.number != 0 { callHas(number: callee.number, from: nil) }
    }

    /// Notes a call of a source's handler, which has neither a date nor a number; `name` is the number of its name.
    @inline(__always)
    func callBegins(
        _ callee: @autoclosure () -> RunLoop.Callee, name: UInt32, in mode: RunLoop.Mode, passTime: RunLoop.Instant
    ) {
        callBegins(name, mode, passTime, FlightEvent.noLateness)
        FlightProbes.callBegins(callee(), nil)
    }

    @inline(__always)
    private func callBegins(_ name: UInt32, _ mode: RunLoop.Mode, _ passTime: RunLoop.Instant, _ value: Int64) {
        if moved != nil { writeMoved() }
        last = max(last, passTime)
        write(.callBegan, name: name, mode: names.number(of: mode), value: value)
        begins.push(last)
    }

    /// Notes that the call that has just begun is the effect with that number.
    func callHas(number: UInt64, from thread: ThreadName?) {
        let name = thread.map { names.number(of: $0) } ?? 0
        let (depth, value) = (max(0, begins.count - 1), Int64(bitPattern: number))
        writer.write(FlightEvent(.callHas, at: last, name: name, depth: depth, value: value))
    }

    func ignoreLateness(in known: (count: Int, sum: Int64)) { latenesses = known }

    private func lateness(of kind: RunLoop.ItemKind, after known: (count: Int, sum: Int64)) -> Int64? {
        let before = latenesses
        latenesses = known
        guard kind.hasDate, known.count == before.count + 1 else { return nil }
        return known.sum &- before.sum
    }

    @inline(__always)
    func callEnds(at now: RunLoop.Instant) {
        if moved != nil { writeMoved() }
        guard let begin = begins.pop() else { return }
        assert(now >= begin, "a call ends before it has begun")
        last = now
        let duration = now.nanoseconds &- begin.nanoseconds
        write(.callEnded, value: duration)
        FlightProbes.callEnds(after: duration)
    }

    /// Notes that a run begins, or has ended.
    func noteRun(_ kind: FlightEvent.Kind, in mode: RunLoop.Mode, at now: RunLoop.Instant) {
        if moved != nil { writeMoved() }
        last = now
        write(kind, mode: names.number(of: mode))
    }

    // MARK: Causes

    /// Notes a sleep since the last event, until a source was ready.
    @inline(__always)
    func wokeUp(
        in mode: RunLoop.Mode, at now: RunLoop.Instant, by source: @autoclosure () -> RunLoop.Callee, name: UInt32
    ) {
        let slept = wokeUp(.sleptUntilReady, name, mode, now)
        FlightProbes.sleepEnds(after: slept, by: "descriptor", source().name ?? "")
    }

    /// Notes a sleep since the last event, until a thread posted something.
    func wokeUp(in mode: RunLoop.Mode, at now: RunLoop.Instant, by thread: ThreadName) {
        let slept = wokeUp(.sleptUntilMail, names.number(of: thread), mode, now)
        FlightProbes.sleepEnds(after: slept, by: "thread", "\(thread)")
    }

    /// Notes a sleep since the last event, until a date or for no known reason.
    func wokeUp(in mode: RunLoop.Mode, at now: RunLoop.Instant, atDate: Bool) {
        let slept = wokeUp(atDate ? .sleptUntilDate : .slept, 0, mode, now)
        FlightProbes.sleepEnds(after: slept, by: atDate ? "date" : "other", "")
    }

    private func wokeUp(
        _ kind: FlightEvent.Kind, _ name: UInt32, _ mode: RunLoop.Mode, _ now: RunLoop.Instant
    ) -> Int64 {
        if moved != nil { writeMoved() }
        let slept = now.nanoseconds &- last.nanoseconds
        last = now
        write(kind, name: name, mode: names.number(of: mode), value: slept)
        return slept
    }

    /// Notes that the innermost call, or the loop itself, has caused a call. The clock is not read.
    func causes(_ callee: RunLoop.Callee) {
        write(.caused, name: names.number(of: callee), value: Int64(bitPattern: callee.number))
        FlightProbes.posts(callee)
    }

    /// Returns a number for a post, unique in the process.
    static func numberOfPost() -> UInt64 { lastPost.wrappingAdd(1, ordering: .relaxed).newValue }

    // MARK: Bytes

    func name(of callee: RunLoop.Callee) -> UInt32 { names.number(of: callee) }

    /// Notes that a connection has moved bytes, the first ones since the last event.
    @inline(__always)
    func noteFirstBytes(of meter: FlightMeter) {
        guard !isOver else { return }
        if moved != nil { writeMoved() }
        moved = UnownedReference(meter)
    }

    func willLose(_ meter: FlightMeter) {
        if moved == UnownedReference(meter) { writeMoved() }
    }

    @inline(never)
    private func writeMoved() {
        moved?.with { write(.moved, name: $0.name, mode: $0.descriptor, value: $0.takeBytes()) }
        moved = nil
    }
}

/// The times at which calls began, the innermost last.
// Memory of its own, because an array checks at each change whether it is shared, and checks each index.
private struct Begins: ~Copyable {
    private var dates = UnsafeMutablePointer<RunLoop.Instant>.allocate(capacity: 64)
    private var capacity = 64
    private(set) var count = 0

    deinit { dates.deallocate() }

    mutating func push(_ date: RunLoop.Instant) {
        if count == capacity { grow() }
        assert(count < capacity, "a date was added beyond the memory for it")
        dates[count] = date
        count &+= 1
    }

    mutating func pop() -> RunLoop.Instant? {
        guard count > 0 else { return nil }
        count &-= 1
        return dates[count]
    }

    @inline(never)
    private mutating func grow() {
        let more = UnsafeMutablePointer<RunLoop.Instant>.allocate(capacity: 2 * capacity)
        more.moveInitialize(from: dates, count: count)
        dates.deallocate()
        (dates, capacity) = (more, 2 * capacity)
    }
}

private let lastPost = Atomic<UInt64>(0)
private let lastLog = Atomic<UInt32>(0)
