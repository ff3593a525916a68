internal import Glibc
@_spi(Ports) internal import RunLoopCore
@_spi(Ports) internal import RunLoopUnix

extension Process {
    // MARK: Receiving

    /// Takes a signal, as from `kill`; 0 does nothing.
    func take(_ number: Int32) {
        guard status == nil, number != 0 else { return }
        let signal = Signal(rawValue: number)
        require(
            ![.stop, .terminalStop, .backgroundRead, .backgroundWrite].contains(signal),
            "\(signal) would stop the process, which is not simulated; crash the host, or cut its links")
        machine.note("\(signal) to process \(processIdentifier)")
        if let program {
            if signal == .kill || !program.take(signal) { end(by: signal) }
            return
        }
        let isHarmless = ignoredSignals.contains(signal) || [SIGCHLD, SIGURG, SIGWINCH, SIGCONT].contains(number)
        if signal == .kill || !(deliver(signal) || isHarmless) { end(by: signal) }
    }

    /// Returns `true` if the process has chosen to ignore a signal.
    func ignores(_ signal: Signal) -> Bool { program?.ignores(signal) ?? ignoredSignals.contains(signal) }

    /// Adds a signal to the counts of the process.
    ///
    /// - Returns: `true` if the signal is counted.
    @discardableResult
    func deliver(_ signal: Signal) -> Bool {
        let counters = descriptors.targets(SimulatedSignalCounter.self).filter { $0.signal == signal }
        for counter in counters { counter.add(1) }
        return !counters.isEmpty
    }

    func count(signal: Int32) throws(SystemError) -> any SignalCounter {
        let counter = SimulatedSignalCounter(Signal(rawValue: signal)) { [unowned self] in close($0) }
        counter.descriptor = descriptors.add(counter)
        if counter.descriptor < 0 { throw SystemError("make a descriptor to count \(counter.signal)", errno: EMFILE) }
        return counter
    }

    func ignore(signal: Int32) -> Int32 {
        ignoredSignals.insert(Signal(rawValue: signal))
        return 0
    }

    // MARK: Sending

    func openProcess(_ identifier: Int32) -> Int32 {
        guard let process = machine.processes.first(where: { $0.processIdentifier == identifier }) else {
            return failure(ESRCH)
        }
        return descriptors.add(process.description)
    }

    func send(_ signal: Int32, toProcess descriptor: Int32) -> Int32 {
        guard let process = (descriptors[descriptor] as? ProcessDescription)?.process,
            machine.processes.contains(where: { $0 === process })
        else { return failure(ESRCH) }
        guard maySignal(process) else { return failure(EPERM) }
        process.take(signal)
        return 0
    }

    func kill(_ identifier: Int32, _ signal: Int32) -> Int32 {
        let targets = machine.processes.filter {
            identifier < 0 ? $0.group == -identifier : $0.processIdentifier == identifier
        }
        let allowed = targets.filter(maySignal)
        for target in allowed { target.take(signal) }
        return targets.isEmpty ? failure(ESRCH) : allowed.isEmpty ? failure(EPERM) : 0
    }

    /// Returns `true` if there is a process with a number, or in the group of a negative one.
    func exists(_ identifier: Int32) -> Bool {
        machine.processes.contains { identifier < 0 ? $0.group == -identifier : $0.processIdentifier == identifier }
    }

    private func maySignal(_ target: Process) -> Bool { user.isRoot || user.identifier == target.user.identifier }
}
