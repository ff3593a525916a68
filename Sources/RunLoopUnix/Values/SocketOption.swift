internal import Glibc

/// A socket option, with the type of its value.
///
/// ```swift
/// try connection.setOption(.keepsAlive, to: true)
/// let room = try connection.option(.receiveBufferSize)
/// ```
///
/// The manual pages socket(7) and tcp(7) describe the options. A simulated socket stores its options; an option has its
/// effect only where the simulated socket implements that effect. A value and `Sendable`.
public struct SocketOption<Value: Sendable>: Sendable {
    let level: Int32
    let name: Int32
    let encode: @Sendable (Value) -> Int32
    let decode: @Sendable (Int32) -> Value
}

extension SocketOption<Bool> {
    /// Creates an option that is on or off from its numbers in the system's headers.
    public init(level: Int32, name: Int32) {
        self.init(level: level, name: name, encode: { $0 ? 1 : 0 }, decode: { $0 != 0 })
    }

    /// The option to send small pieces at once (`TCP_NODELAY`).
    public static var noDelay: Self { Self(level: Int32(IPPROTO_TCP), name: TCP_NODELAY) }
    /// The option to probe a silent peer periodically (`SO_KEEPALIVE`).
    public static var keepsAlive: Self { Self(level: SOL_SOCKET, name: SO_KEEPALIVE) }
}

extension SocketOption<Int> {
    /// Creates an option with an integer value from its numbers in the system's headers. Values are clamped to 32 bits.
    public init(level: Int32, name: Int32) {
        self.init(level: level, name: name, encode: { Int32(clamping: $0) }, decode: { Int($0) })
    }

    /// The size in bytes of the receive buffer (`SO_RCVBUF`). Linux doubles the number for its bookkeeping.
    public static var receiveBufferSize: Self { Self(level: SOL_SOCKET, name: SO_RCVBUF) }
    /// The size in bytes of the send buffer (`SO_SNDBUF`). Linux doubles the number.
    public static var sendBufferSize: Self { Self(level: SOL_SOCKET, name: SO_SNDBUF) }
    /// The seconds of silence before the first probe of ``SocketOption/keepsAlive`` (`TCP_KEEPIDLE`).
    public static var keepAliveIdle: Self { Self(level: Int32(IPPROTO_TCP), name: TCP_KEEPIDLE) }
    /// The seconds between probes of ``SocketOption/keepsAlive`` (`TCP_KEEPINTVL`).
    public static var keepAliveInterval: Self { Self(level: Int32(IPPROTO_TCP), name: TCP_KEEPINTVL) }
    /// The number of unanswered probes after which the connection fails (`TCP_KEEPCNT`).
    public static var keepAliveCount: Self { Self(level: Int32(IPPROTO_TCP), name: TCP_KEEPCNT) }
    /// The milliseconds for which sent bytes may stay unacknowledged before the connection fails (`TCP_USER_TIMEOUT`);
    /// 0 for the system's choice.
    public static var userTimeout: Self { Self(level: Int32(IPPROTO_TCP), name: TCP_USER_TIMEOUT) }
}
