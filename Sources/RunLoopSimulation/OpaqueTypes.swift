internal import RunLoopCore

extension Simulation: Opaque {}
extension Simulation.Hold: Opaque {}
