internal import RunLoopCore

extension ChildProcess: Opaque {}
extension ChildProcess.Remote: Opaque {}
extension Connection: Opaque {}
extension Connection.InputBudget: Opaque {}
extension ConnectionAttempt: Opaque {}
extension Daemon: Opaque {}
extension Daemon.Remote: Opaque {}
extension DatagramSocket: Opaque {}
extension Disk: Opaque {}
extension File: Opaque {}
extension HostLookup: Opaque {}
extension Listener: Opaque {}
extension LoopGroup: Opaque {}
extension Parcel: Opaque {}
extension PipeEnd: Opaque {}
extension Relay: Opaque {}
extension ServiceManager: Opaque {}
extension SignalDeliveries: Opaque {}
extension StandardError: Opaque {}
extension Watchdog: Opaque {}
