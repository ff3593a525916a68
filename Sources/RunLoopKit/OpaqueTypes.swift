@_spi(Ports) public import RunLoopCore

@_spi(Ports) extension Countdown: Opaque {}
@_spi(Ports) extension TimerRegistry: Opaque {}
