internal import Glibc
internal import RunLoopSimulation
internal import RunLoopUnix

extension Process: SimulatedSurroundings {
    var hostName: UnsafePointer<CChar> { UnsafePointer(machine.cName) }

    var userNumber: UInt32 { user.identifier }
    var groupNumber: UInt32 { user.group }
    var furtherGroups: [UInt32] { user.supplementaryGroups }
    func user(named name: String) throws(SystemError) -> ChildProcess.User {
        if let user = Accounts(on: machine.disk).user(named: name) { return user }
        throw SystemError("find the user \(name)", errno: ENOENT)
    }

    var users: [UInt8] { Accounts(on: machine.disk).users }

    var environmentTable: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?> { variables.makeTable() }

    func value(ofVariable name: UnsafePointer<CChar>) -> UnsafeMutablePointer<CChar>? { variables.value(of: name) }
    func setVariable(_ name: UnsafePointer<CChar>, _ value: UnsafePointer<CChar>?) { variables.set(name, value) }
    func putVariable(_ line: UnsafeMutablePointer<CChar>) { variables.put(line) }
    func removeAllVariables() { variables.removeAll() }
}
