/// The surroundings of a simulated process, as calls of the C library find them. Only the thread whose turn it is asks
/// for them.
@_spi(Ports) public protocol SimulatedSurroundings: AnyObject, Sendable {
    /// The name of the host, at an address that stays valid forever.
    var hostName: UnsafePointer<CChar> { get }
    var userNumber: UInt32 { get }
    var groupNumber: UInt32 { get }
    var furtherGroups: [UInt32] { get }
    /// The contents of `/etc/passwd`.
    var users: [UInt8] { get }
    var variables: SimulatedEnvironment { get }
}
