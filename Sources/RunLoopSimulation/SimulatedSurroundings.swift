/// The surroundings of a simulated process, as calls of the C library find them. Only the thread whose turn it is asks.
package protocol SimulatedSurroundings: AnyObject, Sendable {
    /// Stays for ever.
    var hostName: UnsafePointer<CChar> { get }
    var userNumber: UInt32 { get }
    var groupNumber: UInt32 { get }
    var furtherGroups: [UInt32] { get }
    /// The contents of `/etc/passwd`.
    var users: [UInt8] { get }
    var variables: SimulatedEnvironment { get }
}
