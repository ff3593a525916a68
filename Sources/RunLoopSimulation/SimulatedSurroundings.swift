/// The surroundings of a simulated process, as calls of the C library find them. Only the thread whose turn it is asks
/// for them.
@_spi(Ports) public protocol SimulatedSurroundings: AnyObject, Sendable {
    /// The name of the host, at an address that stays valid forever.
    var hostName: UnsafePointer<CChar> { get }
    /// The number of the process's user.
    var userNumber: UInt32 { get }
    /// The number of the process's group.
    var groupNumber: UInt32 { get }
    /// The numbers of the other groups of the user.
    var furtherGroups: [UInt32] { get }
    /// The contents of `/etc/passwd`.
    var users: [UInt8] { get }
    /// The environment of the process.
    var variables: SimulatedEnvironment { get }
}
