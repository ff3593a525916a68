internal import RunLoopCore

extension LoopMetrics: Opaque {}
