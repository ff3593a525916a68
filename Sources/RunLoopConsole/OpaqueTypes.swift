@_spi(Ports) public import RunLoopCore

@_spi(Ports) extension Console: Opaque {}
