#if Adapters
internal import RunLoopCore

extension RunLoopEventLoop: Opaque {}
extension RunLoopEventLoopGroup: Opaque {}
extension RunLoopServerBootstrap: Opaque {}
extension RunLoopClientBootstrap: Opaque {}
#endif
