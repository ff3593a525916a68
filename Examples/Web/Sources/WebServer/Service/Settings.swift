/// The settings of the daemon, which last until its end.
public struct Settings: Sendable {
    /// The address to listen on, in digits.
    public var address = "127.0.0.1"
    /// The port; 0 lets the system choose.
    public var port = 8080
    /// The number of loops that serve connections, each on a thread of its own.
    public var threads = 1
    /// The directory of uploaded files, created if it does not exist.
    public var uploads = "uploads"
    /// The file of limits, which is read again on SIGHUP.
    public var limits: String?
    /// The certificate chain and its key, in PEM, which are read again on SIGHUP; `nil` for no TLS.
    public var certificate: (chain: String, key: String)?
    /// The path of the console's socket; `nil` for no socket.
    public var console: String?
    /// A Boolean value that indicates whether `/console` shows the console to clients with its key, which is beside the
    /// socket.
    public var hasConsolePage = false
    /// The time that a stop waits for requests in progress.
    public var drainTime = Duration.seconds(30)

    /// Creates the default settings.
    public init() {}
}
