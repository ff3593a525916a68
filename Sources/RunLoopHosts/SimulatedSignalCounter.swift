internal import RunLoopCore
internal import RunLoopSimulation
internal import RunLoopUnix

/// Counts a signal that a simulated process is sent.
final class SimulatedSignalCounter: SignalCounter {
    let signal: Signal
    var descriptor: Int32 = -1
    /// Closes the descriptor.
    private let close: (Int32) -> Void
    private var count = 0
    private var isPrimed = false
    private var watches: [DescriptorWatch] = []

    init(_ signal: Signal, close: @escaping (Int32) -> Void) {
        (self.signal, self.close) = (signal, close)
    }

    func add(_ new: Int) {
        count += new
        tell()
    }

    func take() -> Int {
        defer { (count, isPrimed) = (0, false) }
        return isPrimed ? max(1, count) : count
    }

    func prime() {
        isPrimed = true
        tell()
    }

    func end() {
        guard descriptor >= 0 else { return }
        close(descriptor)
        descriptor = -1
    }

    // MARK: Readiness

    var readiness: DescriptorEvents { count > 0 || isPrimed ? .readable : [] }

    func begin(_ watch: DescriptorWatch) {
        watches.append(watch)
        watch.note(readiness)
    }

    func end(_ watch: DescriptorWatch) {
        watches.removeAll { $0 === watch }
    }

    private func tell() {
        for watch in watches { watch.note(readiness) }
    }
}
