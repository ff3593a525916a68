package import RunLoopTLS

/// A server and a client of one authority.
package struct Contexts {
    package let authority = Authority()
    package var server: TLSServerContext
    package var client: TLSClientContext

    package init(_ options: TLSOptions = .patient) throws {
        server = try TLSServerContext(identity: authority.identity(), options: options)
        client = try TLSClientContext(roots: authority.roots, options: options)
    }
}

extension TLSOptions {
    /// For tests whose threads may have to wait for a processor.
    package static var patient: TLSOptions {
        var options = TLSOptions()
        options.handshakeTimeout = .seconds(200)
        return options
    }
}
