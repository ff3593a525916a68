#if Adapters
@_spi(Ports) public import RunLoopCore

@_spi(Ports) extension RunLoopEventLoop: Opaque {}
@_spi(Ports) extension RunLoopEventLoopGroup: Opaque {}
@_spi(Ports) extension RunLoopServerBootstrap: Opaque {}
@_spi(Ports) extension RunLoopClientBootstrap: Opaque {}
#endif
