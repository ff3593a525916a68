internal import RunLoopCore
@_spi(Ports) internal import RunLoopUnix

/// Counts the signals of one kind that a simulated process receives.
final class SimulatedSignalCounter: OpenDescription, SignalCounter {
    let signal: Signal
    var descriptor: Int32 = -1
    private let closeDescriptor: (Int32) -> Void
    private var count = 0
    private var isPrimed = false

    init(_ signal: Signal, close: @escaping (Int32) -> Void) {
        (self.signal, closeDescriptor) = (signal, close)
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
        closeDescriptor(descriptor)
        descriptor = -1
    }

    override var readiness: DescriptorEvents? { count > 0 || isPrimed ? .readable : [] }
}
