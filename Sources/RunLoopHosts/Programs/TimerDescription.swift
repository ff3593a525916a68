internal import CPrograms
internal import CShims
internal import Glibc
internal import RunLoopCore
@_spi(Ports) internal import RunLoopSimulation

/// A timer of a program of the system, as `timerfd` makes it. A change of the wall clock does not move its dates.
final class TimerDescription: OpenDescription {
    private unowned let machine: Machine
    private let isWall: Bool
    private var period: Duration = .zero
    private var next: Appointment?
    /// The number of dates that have come since the last read.
    private var count: UInt64 = 0

    init(on machine: Machine, isWall: Bool) {
        (self.machine, self.isWall) = (machine, isWall)
    }

    /// Sets the first date, in nanoseconds: as the clock will show it, or from now on; 0 for none.
    func set(_ time: Int64, every period: Int64, isDate: Bool) -> Int64 {
        next?.callOff()
        (next, count, self.period) = (nil, 0, .nanoseconds(max(0, period)))
        guard time > 0 else { return 0 }
        let now = machine.network.simulation.now
        let present = rlk_installed_calls().pointee.time(isWall ? rlk_clock_wall : rlk_clock_monotonic)
        schedule(at: now + .nanoseconds(isDate ? max(0, time - present) : time))
        return 0
    }

    private func schedule(at date: RunLoop.Instant) {
        let simulation = machine.network.simulation
        next = simulation.schedule(
            at: max(date, simulation.now), "a timer of a program", from: nil, on: machine.name
        ) { [weak self] in
            guard let self else { return }
            count += 1
            if period > .zero { schedule(at: date + period) } else { next = nil }
            tell()
        }
    }

    override var readiness: DescriptorEvents? { count > 0 ? .readable : [] }

    override func read(into room: UnsafeMutableRawBufferPointer) -> Int {
        guard room.count >= 8 else { return failure(EINVAL) }
        guard count > 0 else { return failure(EAGAIN) }
        room.storeBytes(of: count, as: UInt64.self)
        count = 0
        return 8
    }

    override func close() { next?.callOff() }
}
