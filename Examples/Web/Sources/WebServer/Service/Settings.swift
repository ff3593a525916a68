/// The settings of the daemon, which last until its end.
public struct Settings: Sendable {
    /// The address to listen on, in digits.
    public var address = "127.0.0.1"
    /// The port; 0 lets the system choose.
    public var port = 8080
    /// The loops that serve connections, each on a thread of its own.
    public var threads = 1
    /// The directory of uploaded files, which is made if it does not exist.
    public var uploads = "uploads"
    /// The file of limits, which is read again on SIGHUP.
    public var limits: String?
    /// The certificate chain and its key, in PEM, which are read again on SIGHUP. Without them there is no TLS.
    public var certificate: (chain: String, key: String)?
    /// The path of the console's socket; without it there is none.
    public var console: String?
    /// Whether `/console` shows the console to those who have its key, which is beside the socket.
    public var hasConsolePage = false
    /// How long a stop waits for requests in progress.
    public var drainTime = Duration.seconds(30)

    /// The defaults.
    public init() {}
}
