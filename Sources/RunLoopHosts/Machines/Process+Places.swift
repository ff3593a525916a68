internal import Glibc
internal import RunLoopCore
@_spi(Ports) internal import RunLoopSimulation
internal import RunLoopUnix

/// Calls that reach the world are places of an explored simulation: before and after them a host may crash and other
/// processes may continue, and they may fail.
extension Process {
    /// Performs a call that reaches the world.
    ///
    /// - Parameters:
    ///   - call: the name, for example `write /log`.
    ///   - faults: the errors with which the call may fail at once.
    func reach<Result>(
        _ call: @autoclosure () -> String, _ faults: CallFaults = [], _ body: () throws(Refusal) -> Result
    ) throws(Refusal) -> Result {
        guard isPlace else { return try body() }
        let call = "\(name): \(call())"
        machine.network.simulation.reach("before \(call)")
        for error in CallFaults.errors where faults.contains(error.kind) {
            if fails(error.kind, "\(call) fails with \(error.name)", of: error.name) { throw Refusal(error.reason) }
        }
        let result = try body()
        machine.network.simulation.reach("after \(call)")
        return result
    }

    /// Performs a call that, if it fails, returns a negative number with the reason in `errno`.
    func answer<Number: SignedInteger>(
        _ call: @autoclosure () -> String, _ faults: CallFaults = [], _ body: () throws(Refusal) -> Number
    ) -> Number {
        do {
            return try reach(call(), faults) { () throws(Refusal) in
                let number = try body()
                guard number >= 0 else { throw Refusal(errno) }
                return number
            }
        } catch { return failure(error.reason) }
    }

    /// Sends to another socket, or receives from it, with a call named, for example, `send to`.
    func exchange(_ call: StaticString, _ target: OpenDescription?, _ body: (OpenDescription) -> Int) -> Int {
        guard let target else { return -1 }
        guard isPlace, target is any SocketCalls, !(target is SystemDescription) else { return body(target) }
        let socket = target as? SimulatedSocket
        let call = socket?.peer.map { "\(call) \($0.name)" } ?? "\(call) others"
        if let socket, socket.peer !== machine.sockets,
            fails(.resets, "\(name): \(call) finds a reset", of: "resets")
        {
            socket.resetBothEnds()
        }
        return answer(call, .interruptions) { body(target) }
    }

    /// Returns the number of bytes that a write to a file writes.
    func shortened(_ count: Int, _ call: @autoclosure () -> String) -> Int {
        guard isPlace, count > 1, machine.faults.contains(.shortWrites), machine.faultsLeft > 0 else { return count }
        let lengths = [count, 1, count / 2, count - 1]
        let choice = machine.network.simulation.fault(
            "\(name): \(call()) is short", of: "\(machine.name): short writes",
            atMost: machine.faultsLeft, among: lengths.count, on: machine.name
        ) { "\(lengths[$0]) of \(count) bytes" }
        if choice != 0 { machine.faultsLeft -= 1 }
        return lengths[choice]
    }

    private func fails(_ kind: CallFaults, _ what: @autoclosure () -> String, of name: String) -> Bool {
        guard machine.faults.contains(kind), machine.faultsLeft > 0,
            machine.network.simulation.fault(
                what(), of: "\(machine.name): \(name)", atMost: machine.faultsLeft, on: machine.name) != 0
        else { return false }
        machine.faultsLeft -= 1
        return true
    }

    /// `true` if anything may happen at calls.
    private var isPlace: Bool { machine.network.simulation.hasPlaces }
}
