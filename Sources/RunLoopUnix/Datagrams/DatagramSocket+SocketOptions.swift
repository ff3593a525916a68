extension DatagramSocket {
    /// Returns the value of a socket option. Call it on the loop's thread.
    ///
    /// - Throws: ``SystemError``, for example with `EBADF` if the socket is closed.
    public func option<Value>(_ option: SocketOption<Value>) throws(SystemError) -> Value {
        guard isOpen else { throw closeError }
        return try system.value(of: option, of: fileDescriptor)
    }

    /// Sets a socket option. Call it on the loop's thread.
    ///
    /// - Throws: ``SystemError``, for example with `EBADF` if the socket is closed.
    public func setOption<Value>(_ option: SocketOption<Value>, to value: Value) throws(SystemError) {
        guard isOpen else { throw closeError }
        try system.set(option, of: fileDescriptor, to: value)
    }

    // MARK: Groups

    /// Joins a multicast group, so that the socket receives its datagrams to the socket's port. Call it on the loop's
    /// thread.
    ///
    /// - Parameters:
    ///   - group: the address of the group; its port is ignored.
    ///   - interface: the name of a network interface; by default the system chooses one.
    /// - Throws: ``SystemError``, for example with `EINVAL` for an address that is not a group's, `EADDRINUSE` for a
    ///   group that the socket has already joined, and `ENODEV` for an unknown interface.
    public func join(_ group: Endpoint, at interface: String? = nil) throws(SystemError) {
        try change(joins: true, group, interface)
    }

    /// Leaves a multicast group that the socket has joined at the same interface. Call it on the loop's thread.
    ///
    /// - Throws: ``SystemError`` with `EADDRNOTAVAIL` if the socket has not joined the group there.
    public func leave(_ group: Endpoint, at interface: String? = nil) throws(SystemError) {
        try change(joins: false, group, interface)
    }

    private func change(joins: Bool, _ group: Endpoint, _ interface: String?) throws(SystemError) {
        guard isOpen else { throw closeError }
        guard system.changeMembership(fileDescriptor, joins: joins, group: group, interface: interface) == 0 else {
            throw .last("\(joins ? "join" : "leave") the group \(group)")
        }
    }
}
