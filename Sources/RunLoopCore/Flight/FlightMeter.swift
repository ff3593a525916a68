/// Counts the bytes of a connection for a recorder. It belongs to the loop's thread.
package final class FlightMeter {
    /// As an event has it.
    let descriptor: UInt16
    let name: UInt32
    private let log: FlightLog
    /// The bytes that are not written down yet. Unchecked, as the state of the log.
    @exclusivity(unchecked) private var received: UInt32 = 0
    @exclusivity(unchecked) private var sent: UInt32 = 0

    init(_ log: FlightLog, _ descriptor: Int32, _ callee: Callee) {
        (self.log, self.descriptor) = (log, UInt16(clamping: descriptor))
        name = log.name(of: callee)
    }

    deinit {
        log.willLose(self)
    }

    package func add(_ count: Int, isInput: Bool) {
        if received | sent == 0 { log.noteFirstBytes(of: self) }
        let count = UInt32(truncatingIfNeeded: count)
        if isInput { received &+= count } else { sent &+= count }
    }

    /// The bytes as an event has them.
    func takeBytes() -> Int64 {
        defer { (received, sent) = (0, 0) }
        return Int64(sent) << 32 | Int64(received)
    }
}
