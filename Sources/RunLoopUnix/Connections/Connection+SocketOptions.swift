internal import Glibc
internal import RunLoopKit

extension Connection {
    /// Returns the value of a socket option. Call it on the loop's thread.
    ///
    /// - Throws: ``SystemError``, for example with `ENOTSOCK` for a pipe, and with `EBADF` if the connection is closed.
    public func option<Value>(_ option: SocketOption<Value>) throws(SystemError) -> Value {
        guard isOpen else { throw SystemError("read an option of a connection that was closed", errno: EBADF) }
        return try WorldSystem.of(loop).value(of: option, of: fileDescriptor)
    }

    /// Sets a socket option. Call it on the loop's thread.
    ///
    /// - Throws: ``SystemError``, for example with `ENOTSOCK` for a pipe, and with `EBADF` if the connection is closed.
    public func setOption<Value>(_ option: SocketOption<Value>, to value: Value) throws(SystemError) {
        guard isOpen else { throw SystemError("set an option of a connection that was closed", errno: EBADF) }
        try WorldSystem.of(loop).set(option, of: fileDescriptor, to: value)
    }
}
