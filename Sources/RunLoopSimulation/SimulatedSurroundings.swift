/// The surroundings of a simulated process, as calls of the C library find them. Only the thread whose turn it is asks.
package protocol SimulatedSurroundings: AnyObject, Sendable {
    /// Stays for ever.
    var hostName: UnsafePointer<CChar> { get }
    var userNumber: UInt32 { get }
    var groupNumber: UInt32 { get }
    var furtherGroups: [UInt32] { get }
    /// The contents of `/etc/passwd`.
    var users: [UInt8] { get }
    /// The environment: lines such as `HOME=/root`, and a null pointer, which stay until the next call.
    var environmentTable: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?> { get }
    /// The value of a variable, which stays for ever; `nil` if there is none.
    func value(ofVariable name: UnsafePointer<CChar>) -> UnsafeMutablePointer<CChar>?
    /// Sets a variable, or removes it with the value `nil`.
    func setVariable(_ name: UnsafePointer<CChar>, _ value: UnsafePointer<CChar>?)
    /// Makes a line of the caller a part of the environment, which follows its changes.
    func putVariable(_ line: UnsafeMutablePointer<CChar>)
    func removeAllVariables()
}
