@_spi(Ports) public import RunLoopUnix

extension TLSServerContext {
    /// Returns a stream that speaks TLS over another stream, as the server.
    @_spi(Ports) public func stream(over below: any ByteStream) throws(TLSError) -> any ByteStream {
        TLSStream(try TLSSession(self), over: below)
    }
}

extension TLSClientContext {
    /// Returns a stream that speaks TLS over another stream, as a client of the named server.
    @_spi(Ports) public func stream(over below: any ByteStream, serverName: String) throws(TLSError) -> any ByteStream {
        TLSStream(try TLSSession(self, serverName: serverName), over: below)
    }
}

@_spi(Ports) extension ByteStream {
    /// The TLS session of the stream; `nil` if it does not speak TLS.
    public var tls: TLSSession? { (self as? TLSStream)?.session }
}
