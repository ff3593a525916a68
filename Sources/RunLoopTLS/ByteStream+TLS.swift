package import RunLoopUnix

extension TLSServerContext {
    /// Returns a stream that speaks TLS over another stream, as the server.
    package func stream(over below: any ByteStream) throws(TLSError) -> any ByteStream {
        TLSStream(try TLSSession(self), over: below)
    }
}

extension TLSClientContext {
    /// Returns a stream that speaks TLS over another stream, as a client of the named server.
    package func stream(over below: any ByteStream, serverName: String) throws(TLSError) -> any ByteStream {
        TLSStream(try TLSSession(self, serverName: serverName), over: below)
    }
}

extension ByteStream {
    /// The TLS session of the stream; `nil` if it does not speak TLS.
    package var tls: TLSSession? { (self as? TLSStream)?.session }
}
