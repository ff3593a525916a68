internal import CPrograms
internal import CShims
internal import Glibc
internal import RunLoopCore
@_spi(Ports) internal import RunLoopSimulation

/// A timer of a program of the system, as `timerfd` makes it. A change of the wall clock does not move its dates.
///
/// As on Linux, a timer with a period reports one date, and no other until the timer is read.
final class TimerDescription: OpenDescription {
    private unowned let machine: Machine
    private let clock: rlk_clock
    private var period: Duration = .zero
    /// The next date, or the last one if it has come.
    private var date = RunLoop.Instant.distantPast
    private var next: Appointment?
    private var hasCome = false
    /// The number of dates that have come since the last read.
    private var count: UInt64 = 0

    init(on machine: Machine, _ clock: rlk_clock) {
        (self.machine, self.clock) = (machine, clock)
    }

    private var now: RunLoop.Instant { machine.network.simulation.now }

    /// Sets the first date, in nanoseconds: as the clock will show it, or from now on; 0 for none.
    func set(_ time: Int64, every period: Int64, isDate: Bool) {
        next?.callOff()
        (next, hasCome, count, self.period) = (nil, false, 0, .nanoseconds(period))
        date = .distantPast
        guard time > 0 else { return }
        // A date may lie in the past.
        schedule(at: now + .nanoseconds(isDate ? time - rlk_installed_calls().pointee.time(clock) : time))
    }

    /// The time until the next date, 0 for none, and the period, in nanoseconds.
    var left: (length: Int64, period: Int64) {
        goOn()
        return (date > now ? (date - now).nanoseconds : 0, period.nanoseconds)
    }

    private func schedule(at date: RunLoop.Instant) {
        self.date = date
        guard date > now else { return come() }
        next = machine.network.simulation.schedule(
            at: date, "a timer of a program", from: nil, on: machine.name
        ) { [weak self] in self?.come() }
    }

    private func come() {
        (next, hasCome, count) = (nil, true, count + 1)
        tell()
    }

    /// Counts the dates that have come, and waits for the next one.
    private func goOn() {
        guard hasCome, period > .zero else { return }
        hasCome = false
        let more = (now - date).nanoseconds / period.nanoseconds
        count += UInt64(more)
        schedule(at: date + .nanoseconds((more + 1) * period.nanoseconds))
    }

    override var readiness: DescriptorEvents? { count > 0 ? .readable : [] }

    override func read(into room: UnsafeMutableRawBufferPointer) -> Int {
        guard room.count >= 8 else { return failure(EINVAL) }
        guard count > 0 else { return failure(EAGAIN) }
        goOn()
        room.storeBytes(of: count, as: UInt64.self)
        (count, hasCome) = (0, false)
        return 8
    }

    override func close() { next?.callOff() }
}
