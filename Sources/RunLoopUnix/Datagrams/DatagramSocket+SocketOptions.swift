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

    // MARK: Groups

    /// Receives the datagrams to a multicast group, at the socket's port. On the loop's thread.
    ///
    /// - Parameters:
    ///   - group: the address of the group; its port does not matter.
    ///   - interface: the name of a network interface; by default the system chooses one.
    /// - Throws: ``SystemError``, for example with `EINVAL` for an address of no group, `EADDRINUSE` for a group that it
    ///   has joined already, and `ENODEV` for an interface that is not there.
    public func join(_ group: Endpoint, at interface: String? = nil) throws(SystemError) {
        try change(joins: true, group, interface)
    }

    /// Leaves a group that it has joined at the same interface. On the loop's thread.
    ///
    /// - Throws: ``SystemError`` with `EADDRNOTAVAIL` if it has not.
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
