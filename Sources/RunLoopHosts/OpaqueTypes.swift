internal import RunLoopCore

extension SimulatedDisk: Opaque {}
extension SimulatedHost: Opaque {}
extension SimulatedNetwork: Opaque {}
extension SimulatedProcess: Opaque {}
