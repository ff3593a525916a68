internal import CPrograms
internal import CShims
internal import Glibc
internal import RunLoopCore
@_spi(Ports) internal import RunLoopSimulation
internal import RunLoopUnix

/// The signals of a program. The simulation chooses the thread that receives one; the library in the program calls the
/// handler.
extension SystemProgram {
    // MARK: Receiving

    func ignores(_ signal: Signal) -> Bool { rlk_ignores_signal(page, signal.rawValue) != 0 }

    /// Takes a signal for the program.
    ///
    /// - Returns: `false` if it ends the program.
    func take(_ signal: Signal) -> Bool {
        switch rlk_signal_program(page, slotCount, signal.rawValue) {
        case let slot where slot >= 0: wake(slot)
        case rlk_signal_is_blocked.rawValue:
            for queue in process.descriptors.targets(SignalQueue.self) { queue.tell() }
        case rlk_signal_ends_process.rawValue: return false
        default: break
        }
        return true
    }

    // MARK: The calls

    func answerSignal(_ request: Request) -> Int64 {
        let (first, second, third, _) = request.arguments
        let number = Int32(truncatingIfNeeded: first)
        switch request.kind {
        case rlk_request_end_by_signal: end(by: Signal(rawValue: number), isOwn: second == 1)
        case rlk_request_interrupt: wake(number)
        case rlk_request_kill: return kill(number, Int32(truncatingIfNeeded: second))
        case rlk_request_set_alarm: answerAlarm(request, first, second, isSet: third == 0)
        case rlk_request_signals:
            let queue = SignalQueue(of: self, UInt64(bitPattern: second))
            return self.number(process.descriptors.add(queue))
        default:
            let target = process.target(of: descriptor(request))
            guard let queue = target as? SignalQueue else { return -Int64(target == nil ? EBADF : EINVAL) }
            queue.set = UInt64(bitPattern: second)
            queue.tell()
        }
        return 0
    }

    /// Ends the process by a signal; with one of its own, that is a crash.
    private func end(by signal: Signal, isOwn: Bool) {
        if isOwn { process.failureHandler?(Crash(signal: signal)) }
        process.end(by: signal)
    }

    private func kill(_ target: Int32, _ signal: Int32) -> Int64 {
        // One of all other processes.
        guard target != -1 else { return -Int64(ESRCH) }
        let target = target == 0 ? -process.group : target
        if signal == 0 { return process.exists(target) ? 0 : -Int64(ESRCH) }
        guard 1...64 ~= signal else { return -Int64(EINVAL) }
        return result(process.kill(target, signal))
    }

    // MARK: The alarm

    /// Sets the timer that sends SIGALRM. The data become the former time and period.
    private func answerAlarm(_ request: Request, _ length: Int64, _ period: Int64, isSet: Bool) {
        let left = alarm.map { max(1, ($0.date - process.machine.network.simulation.now).nanoseconds) } ?? 0
        let former = (left, alarm?.period.nanoseconds ?? 0)
        withUnsafeBytes(of: former) { request.set($0) }
        guard isSet else { return }
        alarm?.next.callOff()
        alarm = nil
        if length > 0 { setAlarm(after: .nanoseconds(length), every: .nanoseconds(period)) }
    }

    private func setAlarm(after length: Duration, every period: Duration) {
        let simulation = process.machine.network.simulation
        let date = simulation.now + length
        let next = simulation.schedule(at: date, "an alarm of a program", from: nil, on: process.machine.name) {
            [weak self] in
            guard let self else { return }
            alarm = nil
            if period > .zero { setAlarm(after: period, every: period) }
            process.take(SIGALRM)
        }
        alarm = Alarm(next: next, date: date, period: period)
    }
}

/// A descriptor at which a program reads signals that it blocks, as `signalfd` makes it.
final class SignalQueue: OpenDescription {
    private unowned let program: SystemProgram
    var set: UInt64

    init(of program: SystemProgram, _ set: UInt64) {
        (self.program, self.set) = (program, set)
    }

    /// The signals that can be read. Those of a single thread are the first one's.
    private var pending: UInt64 { rlk_pending_signals(program.page, 0, set) }

    override var readiness: DescriptorEvents? { pending == 0 ? [] : .readable }

    override func read(into room: UnsafeMutableRawBufferPointer) -> Int {
        let size = 128
        guard room.count >= size else { return failure(EINVAL) }
        guard pending != 0 else { return failure(EAGAIN) }
        var count = 0
        while pending != 0, count + size <= room.count {
            let signal = Int32(pending.trailingZeroBitCount) + 1
            rlk_take_signal(program.page, 0, signal)
            let bytes = UnsafeMutableRawBufferPointer(rebasing: room[count..<count + size])
            bytes.initializeMemory(as: UInt8.self, repeating: 0)
            bytes.storeBytes(of: signal, as: Int32.self)
            count += size
        }
        tell()
        return count
    }
}
