@_spi(Ports) public import RunLoopCore

@_spi(Ports) extension TLSClientContext: Opaque {}
@_spi(Ports) extension TLSServerContext: Opaque {}
@_spi(Ports) extension TLSSession: Opaque {}
