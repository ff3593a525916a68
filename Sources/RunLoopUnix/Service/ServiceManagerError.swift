/// An error in notifying the service manager, or in reading its variables.
public enum ServiceManagerError: Error, Equatable, Sendable, CustomStringConvertible {
    /// An environment variable does not follow the protocol.
    case invalidVariable(name: String, value: String, reason: String)
    /// The message is invalid and cannot be sent.
    case invalidMessage(String, reason: String)
    /// The manager has not yet accepted earlier messages; this message was not sent.
    case busy
    /// The number of names differs from the number of sockets.
    case namesDoNotMatch(names: Int, sockets: Int)
    /// The manager announced a descriptor that is not open.
    case notOpen(Int32)
    /// A socket is not of the expected kind.
    case unexpectedSocket(name: String, expected: String, found: String)
    /// An error of the system.
    case system(SystemError)

    public var description: String {
        switch self {
        case .invalidVariable(let name, let value, let reason):
            "\(name)=\(value) in the environment: \(reason)"
        case .invalidMessage(let message, let reason):
            "\"\(message)\" cannot be sent to the service manager: \(reason)"
        case .busy:
            "the service manager has not taken its earlier messages yet; this one was not sent"
        case .namesDoNotMatch(let names, let sockets):
            "LISTEN_FDNAMES has \(names) name(s) for \(sockets) socket(s) of LISTEN_FDS"
        case .notOpen(let descriptor):
            "descriptor \(descriptor) was announced by LISTEN_FDS and is not open"
        case .unexpectedSocket(let name, let expected, let found):
            "the socket \"\(name)\" is \(found); \(expected) was expected"
        case .system(let error):
            error.description
        }
    }
}
