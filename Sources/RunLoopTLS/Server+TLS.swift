@_spi(Ports) public import RunLoopUnix

extension Server {
    /// Has connections that are accepted from now on speak TLS. Call it before the server listens, and again to renew a
    /// certificate: open connections continue with theirs. On the thread of the server's loop.
    ///
    /// The server's closure sets handlers as without TLS, among them ``/RunLoopUnix/Connection/handshakeHandler``; it
    /// is called before the handshake. If OpenSSL cannot make a session, the server's error handler is given a
    /// ``TLSError`` of the kind `configuration`, and the connection is closed.
    ///
    /// - Parameter context: the TLS context.
    public func setTLS(_ context: TLSServerContext) {
        setLayer { TLSStream(try TLSSession(context), over: $0) }
    }
}
