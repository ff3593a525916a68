extension Daemon {
    /// Ends a server with the daemon, in stages: it stops accepting, its connections finish in the stage of the drain,
    /// and the rest are closed first in the last stage. See ``Server/shutDown(within:completion:)``; the deadline is
    /// ``drainLimit``.
    ///
    /// The daemon keeps the server. Call it on the loop's thread, which is that of the server, too.
    ///
    /// - Parameters:
    ///   - server: the server.
    ///   - name: the name of its hooks in ``abandoned``.
    public func add(_ server: Server, name: String = "server") {
        onStop(.stopAccepting, name: name) { done in server.stopAccepting { done() } }
        onStop(.drain, name: name) { done in server.drain { done() } }
        onStop(.exit, order: .min, name: name) { server.close() }
    }
}
