#if Adapters
extension HTTPClient {
    /// The errors of a client. `Sendable`.
    public enum Failure: Error, Sendable, CustomStringConvertible {
        /// The address of a request names no scheme `http` or `https`, no host, or no path.
        case address(String)
        /// The server could not be reached: the error of the look-up, the connection or TLS.
        case unreachable(any Error)
        /// The time for the head of the answer is over; see ``Options/answerTime``.
        case answerTime
        /// The server has sent nothing more of a body, or taken nothing more of one, for ``Options/stallTime``.
        case stallTime
        /// The connection closed before the exchange was complete.
        case closed
        /// The server's answer is not HTTP, or its head is larger than ``Options/headBytes``.
        case malformed(any Error)
        /// The body of the answer is longer than the program takes.
        case bodyLimit
        /// The closure that writes the body of the request has thrown this error.
        case requestBody(any Error)
        /// The program has written fewer or more bytes than it had announced.
        case wrongLength
        /// The client was closed.
        case clientClosed

        public var description: String {
            switch self {
            case .address(let text): "\(text.debugDescription) is no address like http://host:port/path"
            case .unreachable(let error): "the server cannot be reached: \(error)"
            case .answerTime: "the server did not answer in time"
            case .stallTime: "the server stalled"
            case .closed: "the connection closed before the answer was complete"
            case .malformed(let error): "the server's answer cannot be read: \(error)"
            case .bodyLimit: "the body of the answer is too long"
            case .requestBody(let error): "the body of the request was not written: \(error)"
            case .wrongLength: "a request had fewer or more bytes than its announced length"
            case .clientClosed: "the client was closed"
            }
        }
    }
}
#endif
