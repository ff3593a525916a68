extension DatagramSocket {
    /// The value of an option of the socket. On the loop's thread.
    ///
    /// - Throws: ``SystemError``, for example with `EBADF` if the socket is closed.
    public func option<Value>(_ option: SocketOption<Value>) throws(SystemError) -> Value {
        guard isOpen else { throw closeError }
        return try system.value(of: option, of: fileDescriptor)
    }

    /// Sets an option of the socket. On the loop's thread.
    ///
    /// - Throws: ``SystemError``, for example with `EBADF` if the socket is closed.
    public func setOption<Value>(_ option: SocketOption<Value>, to value: Value) throws(SystemError) {
        guard isOpen else { throw closeError }
        try system.set(option, of: fileDescriptor, to: value)
    }
}
