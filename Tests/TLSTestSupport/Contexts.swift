package import RunLoopTLS

/// A server and a client of one authority.
package struct Contexts {
    package let authority = Authority()
    /// The server's identity.
    package let identity: TLSIdentity
    package var server: TLSServerContext
    package var client: TLSClientContext

    package init(_ options: TLSOptions = .patient) throws {
        identity = authority.identity()
        server = try TLSServerContext(identity: identity, options: options)
        client = try TLSClientContext(roots: authority.roots, options: options)
    }
}

extension TLSOptions {
    /// Options for tests whose threads may have to wait for a processor.
    package static var patient: TLSOptions {
        var options = TLSOptions()
        options.handshakeTimeout = .seconds(200)
        return options
    }
}
