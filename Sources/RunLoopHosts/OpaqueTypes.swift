@_spi(Ports) public import RunLoopCore

@_spi(Ports) extension SimulatedDisk: Opaque {}
@_spi(Ports) extension SimulatedHost: Opaque {}
@_spi(Ports) extension SimulatedNetwork: Opaque {}
@_spi(Ports) extension SimulatedProcess: Opaque {}
