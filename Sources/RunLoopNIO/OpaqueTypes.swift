#if Adapters
internal import RunLoopCore

extension RunLoopEventLoop: Opaque {}
extension RunLoopServerBootstrap: Opaque {}
extension RunLoopClientBootstrap: Opaque {}
#endif
