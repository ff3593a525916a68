/// Counts the bytes of a connection for a recorder. It belongs to the loop's thread.
package final class FlightMeter {
    private let log: FlightLog
    private let descriptor: Int32
    private let name: UInt32

    init(_ log: FlightLog, _ descriptor: Int32, _ callee: Callee) {
        (self.log, self.descriptor) = (log, descriptor)
        name = log.name(of: callee)
    }

    package func add(_ count: Int, isInput: Bool) {
        log.moved(count, isInput: isInput, by: descriptor, name)
    }
}
