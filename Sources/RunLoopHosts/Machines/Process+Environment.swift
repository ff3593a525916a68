internal import Glibc
internal import RunLoopCore
internal import RunLoopSimulation
internal import RunLoopUnix

extension Process {
    var environment: [[CChar]] {
        variables.sorted { $0.key < $1.key }.map { Array("\($0.key)=\($0.value)".utf8CString) }
    }

    func variable(_ name: String) -> String? { variables[name] }

    func removeVariable(_ name: String) {
        variables[name] = nil
    }

    // MARK: The service manager

    func openNotifySocket() -> Int32 { descriptors.add(OpenDescription()) }

    func notify(_ descriptor: Int32, at address: [UInt8], _ message: [UInt8]) -> Int {
        guard let manager else { return failure(ECONNREFUSED) }
        manager(String(decoding: message, as: UTF8.self))
        return message.count
    }

    // MARK: Time

    var monotonicMicroseconds: Int64 { machine.network.simulation.now.nanoseconds / 1_000 }

    func holdTime(for what: @autoclosure () -> String, on loop: RunLoop) -> (any TimeHold)? { nil }

    func makeHolds(for socket: Int32, on loop: RunLoop, _ origin: RunLoop.Origin) -> StreamHolds? { nil }
}
