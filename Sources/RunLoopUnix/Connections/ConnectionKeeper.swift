/// An object that keeps connections, each at a place, until they are closed or handed over.
protocol ConnectionKeeper: AnyObject {
    /// The connection has been closed or handed over. Its close handler has been called.
    func lost(_ connection: Connection)
}
