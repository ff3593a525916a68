#if Adapters
internal import Glibc
public import HTTPTypes
internal import NIOCore

extension HTTPClient {
    /// The errors of a client. `Sendable`.
    public enum Failure: Error, Sendable, CustomStringConvertible {
        /// The address of a request names no scheme `http` or `https`, or of a WebSocket `ws` or `wss`, or no host.
        case address(String)
        /// The server could not be reached: the error of the look-up, the connection or TLS.
        case unreachable(any Error)
        /// The time for the head of the answer is over; see ``Options/answerTime``.
        case answerTime
        /// The server has sent nothing more of a body, or taken nothing more of one, for ``Options/stallTime``; or the server of
        /// a ``WebSocket`` has given no sign of life.
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
        /// The server has answered the request for a ``WebSocket`` with this head, for example with the status 401 or 426.
        case notUpgraded(HTTPResponse)
        /// The server has broken a rule of WebSocket: its frames, a text that is not UTF-8, or ``Options/messageBytes``. The
        /// client has closed with this status, such as 1002, 1007 or 1009.
        case brokenWebSocket(UInt16)
        /// The program has written to a ``WebSocket`` without waiting, and the server has not read ``Options/unreadBytes``.
        case unreadBytes

        public var description: String {
            switch self {
            case .address(let text): "\(text.debugDescription) is no address like http://host:port/path"
            // The description of SwiftNIO's error has a parenthesis too many.
            case .unreachable(let error as IOError):
                "the server cannot be reached: \(String(cString: strerror(error.errnoCode)))"
            case .unreachable(let error): "the server cannot be reached: \(error)"
            case .answerTime: "the server did not answer in time"
            case .stallTime: "the server stalled"
            case .closed: "the connection closed before the answer was complete"
            case .malformed(let error): "the server's answer cannot be read: \(error)"
            case .bodyLimit: "the body of the answer is too long"
            case .requestBody(let error): "the body of the request was not written: \(error)"
            case .wrongLength: "a request had fewer or more bytes than its announced length"
            case .clientClosed: "the client was closed"
            case .notUpgraded(let head): "the server has answered \(head.status) instead of a WebSocket"
            case .brokenWebSocket(let code): "the server has broken a rule of WebSocket, and was told \(code)"
            case .unreadBytes: "the server has left too much of a WebSocket unread"
            }
        }

        init(_ loss: WebSocket.Loss) {
            self =
                switch loss {
                case .cut: .closed
                case .broken(let code): .brokenWebSocket(code)
                case .unread: .unreadBytes
                case .silent, .stalled: .stallTime
                }
        }
    }
}
#endif
