/// Counts the bytes of a connection for a recorder, and tells watchers of them. On the loop's thread.
package final class FlightMeter {
    /// The descriptor, in the form of an event.
    let descriptor: UInt16
    let name: UInt32
    private let log: FlightLog?
    /// Unretained `log`: retaining it for each event would cost an echo 1 %.
    private let flight: UnownedReference<FlightLog>?
    /// Tells watchers of received and sent bytes.
    private let report: ((_ received: Int, _ sent: Int) -> Void)?
    /// The bytes that are not written yet.
    private var received: UInt32 = 0
    private var sent: UInt32 = 0

    init(
        _ log: FlightLog?, _ descriptor: Int32, _ callee: RunLoop.Callee,
        report: ((_ received: Int, _ sent: Int) -> Void)? = nil
    ) {
        (self.log, self.descriptor, self.report) = (log, UInt16(clamping: descriptor), report)
        flight = log.map { UnownedReference($0) }
        name = log?.name(of: callee) ?? 0
    }

    deinit {
        log?.willLose(self)
    }

    package func addInput(_ count: Int) {
        assert(count > 0, "no bytes were received")
        guard received | sent != 0 else { return addFirst(input: count, output: 0) }
        received &+= UInt32(truncatingIfNeeded: count)
    }

    package func addOutput(_ count: Int) {
        assert(count > 0, "no bytes were sent")
        guard received | sent != 0 else { return addFirst(input: 0, output: count) }
        sent &+= UInt32(truncatingIfNeeded: count)
    }

    @inline(never)
    private func addFirst(input: Int, output: Int) {
        (received, sent) = (UInt32(truncatingIfNeeded: input), UInt32(truncatingIfNeeded: output))
        flight?.with { $0.noteFirstBytes(of: self) }
        if report != nil { tell(input: input, output: output) }
    }

    /// Tells watchers at once. The log has the bytes at once as well: the next ones are first bytes again.
    @inline(never)
    private func tell(input: Int, output: Int) {
        log?.willLose(self)
        _ = takeBytes()
        report?(input, output)
    }

    /// Takes the counted bytes, in the form of an event.
    func takeBytes() -> Int64 {
        defer { (received, sent) = (0, 0) }
        return Int64(sent) << 32 | Int64(received)
    }
}
