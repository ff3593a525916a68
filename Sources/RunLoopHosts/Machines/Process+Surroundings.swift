internal import RunLoopSimulation

extension Process: SimulatedSurroundings {
    var hostName: UnsafePointer<CChar> { UnsafePointer(machine.cName) }

    var environmentTable: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?> { variables.makeTable() }

    func value(ofVariable name: UnsafePointer<CChar>) -> UnsafeMutablePointer<CChar>? { variables.value(of: name) }
    func setVariable(_ name: UnsafePointer<CChar>, _ value: UnsafePointer<CChar>?) { variables.set(name, value) }
    func putVariable(_ line: UnsafeMutablePointer<CChar>) { variables.put(line) }
    func removeAllVariables() { variables.removeAll() }
}
