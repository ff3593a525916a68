#if Adapters
internal import RunLoopCore

extension LoopMetrics: Opaque {}
#endif
