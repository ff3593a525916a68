internal import Glibc

/// An option of a socket, with the type of its value.
///
/// ```swift
/// try connection.setOption(.keepsAlive, to: true)
/// let room = try connection.option(.receiveBufferSize)
/// ```
///
/// The options of the system, as its page socket(7) and tcp(7) describe them. In a simulation a socket keeps the options
/// that it is given; those that change what a socket does have that effect only where a simulated socket does the same
/// thing. A value and `Sendable`.
public struct SocketOption<Value: Sendable>: Sendable {
    let level: Int32
    let name: Int32
    let encode: @Sendable (Value) -> Int32
    let decode: @Sendable (Int32) -> Value
}

extension SocketOption<Bool> {
    /// An option that is on or off, by its numbers in the system's headers.
    public init(level: Int32, name: Int32) {
        self.init(level: level, name: name, encode: { $0 ? 1 : 0 }, decode: { $0 != 0 })
    }

    /// Whether small pieces are sent at once (`TCP_NODELAY`).
    public static var noDelay: Self { Self(level: Int32(IPPROTO_TCP), name: TCP_NODELAY) }
    /// Whether the system asks a silent peer from time to time whether it is still there (`SO_KEEPALIVE`).
    public static var keepsAlive: Self { Self(level: SOL_SOCKET, name: SO_KEEPALIVE) }
}

extension SocketOption<Int> {
    /// An option with a number, by its own numbers in the system's headers. Values that do not fit 32 bits become the
    /// nearest that do.
    public init(level: Int32, name: Int32) {
        self.init(level: level, name: name, encode: { Int32(clamping: $0) }, decode: { Int($0) })
    }

    /// The bytes that the system keeps until they are read (`SO_RCVBUF`). Linux doubles the number, for its bookkeeping.
    public static var receiveBufferSize: Self { Self(level: SOL_SOCKET, name: SO_RCVBUF) }
    /// The bytes that the system keeps until the peer has them (`SO_SNDBUF`). Linux doubles the number.
    public static var sendBufferSize: Self { Self(level: SOL_SOCKET, name: SO_SNDBUF) }
    /// The seconds of silence after which ``SocketOption/keepsAlive`` asks for the first time (`TCP_KEEPIDLE`).
    public static var keepAliveIdle: Self { Self(level: Int32(IPPROTO_TCP), name: TCP_KEEPIDLE) }
    /// The seconds between two such questions (`TCP_KEEPINTVL`).
    public static var keepAliveInterval: Self { Self(level: Int32(IPPROTO_TCP), name: TCP_KEEPINTVL) }
    /// The number of questions without an answer after which the connection fails (`TCP_KEEPCNT`).
    public static var keepAliveCount: Self { Self(level: Int32(IPPROTO_TCP), name: TCP_KEEPCNT) }
    /// The milliseconds for which the peer may leave sent bytes unanswered before the connection fails
    /// (`TCP_USER_TIMEOUT`); 0 for the system's choice.
    public static var userTimeout: Self { Self(level: Int32(IPPROTO_TCP), name: TCP_USER_TIMEOUT) }
}
