/// Counts the bytes of a connection for a recorder. On the loop's thread.
package final class FlightMeter {
    /// The descriptor, in the form of an event.
    let descriptor: UInt16
    let name: UInt32
    private let log: FlightLog
    /// The bytes that are not written yet. Unchecked, like the state of the log.
    @exclusivity(unchecked) private var received: UInt32 = 0
    @exclusivity(unchecked) private var sent: UInt32 = 0

    init(_ log: FlightLog, _ descriptor: Int32, _ callee: Callee) {
        (self.log, self.descriptor) = (log, UInt16(clamping: descriptor))
        name = log.name(of: callee)
    }

    deinit {
        log.willLose(self)
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
        log.noteFirstBytes(of: self)
    }

    /// Takes the counted bytes, in the form of an event.
    func takeBytes() -> Int64 {
        defer { (received, sent) = (0, 0) }
        return Int64(sent) << 32 | Int64(received)
    }
}
