@_spi(Ports) public import RunLoopCore

@_spi(Ports) extension ChildProcess: Opaque {}
@_spi(Ports) extension ChildProcess.Remote: Opaque {}
@_spi(Ports) extension Connection: Opaque {}
@_spi(Ports) extension Connection.InputBudget: Opaque {}
@_spi(Ports) extension ConnectionAttempt: Opaque {}
@_spi(Ports) extension Daemon: Opaque {}
@_spi(Ports) extension Daemon.Remote: Opaque {}
@_spi(Ports) extension DatagramSocket: Opaque {}
@_spi(Ports) extension Disk: Opaque {}
@_spi(Ports) extension File: Opaque {}
@_spi(Ports) extension HostLookup: Opaque {}
@_spi(Ports) extension Listener: Opaque {}
@_spi(Ports) extension LoopGroup: Opaque {}
@_spi(Ports) extension Parcel: Opaque {}
@_spi(Ports) extension PipeEnd: Opaque {}
@_spi(Ports) extension Relay: Opaque {}
@_spi(Ports) extension ServiceManager: Opaque {}
@_spi(Ports) extension SignalDeliveries: Opaque {}
@_spi(Ports) extension StandardError: Opaque {}
@_spi(Ports) extension Watchdog: Opaque {}
