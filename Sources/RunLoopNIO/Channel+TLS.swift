#if Adapters
public import NIOCore
public import RunLoopTLS

extension Channel {
    /// The session of RunLoopTLS below a channel of ``RunLoopServerBootstrap`` or ``RunLoopClientBootstrap``, for example
    /// for the certificate of the peer; `nil` if the channel does not speak TLS, or is closed. On the event loop's thread.
    public var tls: TLSSession? {
        eventLoop.preconditionInEventLoop()
        return (self as? StreamChannel)?.tls
    }
}
#endif
