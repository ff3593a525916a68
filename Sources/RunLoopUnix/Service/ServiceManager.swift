internal import Glibc

/// The service manager that started this process, notified by systemd's protocol without systemd's library.
///
/// ```swift
/// let manager = try ServiceManager()
/// try manager.ready()
/// try manager.status("serving 12 clients")
/// ```
///
/// Without a manager, as in a terminal, nothing is sent: every call returns `false`, and ``remarks`` has the reason.
/// The object is `Sendable`; any thread may use it. No call waits for the manager: if its queue is full, the call sends
/// nothing and throws ``ServiceManagerError/busy``. A ``Daemon`` tries again.
public final class ServiceManager: Sendable {
    /// A Boolean value that indicates whether there is a manager to notify.
    public var isPresent: Bool { socket != nil }

    /// The time that the manager waits for a sign of life before it acts; `nil` if it expects none from this process.
    /// See ``Watchdog``.
    public let watchdogPeriod: Duration?

    /// The ignored settings of the environment with the reasons, one line each, for a log.
    public let remarks: [String]

    private let system: any SystemCalls
    private let socket: NotifySocket?

    /// Creates a manager from the environment, whose variables are checked.
    ///
    /// - Parameters:
    ///   - environment: the variables; the process's own unless given.
    ///   - unsetEnvironment: whether to remove the variables from the process's environment afterwards, so that
    ///     children cannot send messages in its name. Set it only before other threads exist, because the C library's
    ///     environment is not thread-safe. Ignored if `environment` is not `nil`.
    /// - Throws: ``ServiceManagerError/invalidVariable(name:value:reason:)``, or an error of the system.
    public init(environment: [String: String]? = nil, unsetEnvironment: Bool = false) throws(ServiceManagerError) {
        system = WorldSystem.current
        let variables = ServiceEnvironment(environment, system)
        var remarks: [String] = []
        if let name = variables[.notifySocket] {
            socket = try NotifySocket(name, system)
        } else {
            socket = nil
            remarks.append("NOTIFY_SOCKET is not set: there is no service manager to notify")
        }
        watchdogPeriod = try ServiceManager.watchdogPeriod(variables, &remarks)
        self.remarks = remarks
        if unsetEnvironment { variables.remove([.notifySocket, .watchdogPeriod, .watchdogProcess]) }
    }

    private static func watchdogPeriod(
        _ variables: ServiceEnvironment, _ remarks: inout [String]
    ) throws(ServiceManagerError) -> Duration? {
        guard let microseconds = try variables.number(.watchdogPeriod) else { return nil }
        guard microseconds > 0, microseconds <= Int64.max / 1000 else {
            throw .invalid(
                .watchdogPeriod, "\(microseconds)",
                "it must be a time in microseconds, above zero and below 292 years")
        }
        if let process = try variables.process(.watchdogProcess), process != variables.ownProcess {
            remarks.append(
                "WATCHDOG_PID is \(process), and this is process \(variables.ownProcess): the watchdog is not ours")
            return nil
        }
        return .microseconds(Int64(microseconds))
    }

    // MARK: Messages

    /// Announces that the service has started, or has finished reloading.
    ///
    /// - Returns: whether a manager received the message.
    @discardableResult
    public func ready() throws(ServiceManagerError) -> Bool { try send("READY=1") }

    /// Announces that the service is reloading its configuration, until ``ready()`` is sent. The message carries the
    /// time of the system's monotonic clock, as `Type=notify-reload` requires.
    @discardableResult
    public func reloading() throws(ServiceManagerError) -> Bool {
        try send("RELOADING=1\nMONOTONIC_USEC=\(system.monotonicMicroseconds)")
    }

    /// Announces that the service is stopping.
    @discardableResult
    public func stopping() throws(ServiceManagerError) -> Bool { try send("STOPPING=1") }

    /// Describes the current state of the service in one line of text, which `systemctl status` shows.
    ///
    /// - Throws: ``ServiceManagerError/invalidMessage(_:reason:)`` if the text has more than one line.
    @discardableResult
    public func status(_ text: String) throws(ServiceManagerError) -> Bool {
        guard !text.utf8.contains(where: { $0 == 10 || $0 == 0 }) else {
            throw .invalidMessage(text, reason: "a status is one line; further lines would be taken for other messages")
        }
        return try send("STATUS=\(text)")
    }

    /// Names the service's main process if it is not the process that was started.
    @discardableResult
    public func mainPID(_ process: Int32) throws(ServiceManagerError) -> Bool {
        guard process > 0 else {
            throw .invalidMessage("MAINPID=\(process)", reason: "it must be the number of a process")
        }
        return try send("MAINPID=\(process)")
    }

    /// Announces that starting, reloading or stopping takes longer. From now on, the manager waits this long for the
    /// next message, even beyond the unit's time limit.
    @discardableResult
    public func extendTimeout(_ duration: Duration) throws(ServiceManagerError) -> Bool {
        let microseconds = duration / .microseconds(1)
        guard microseconds >= 1, microseconds < 0x1p63 else {
            throw .invalidMessage("EXTEND_TIMEOUT_USEC=\(duration)", reason: "it must be a microsecond or more")
        }
        return try send("EXTEND_TIMEOUT_USEC=\(Int64(microseconds))")
    }

    /// Sends a sign of life, as a ``Watchdog`` does at the right times.
    @discardableResult
    public func feedWatchdog() throws(ServiceManagerError) -> Bool { try send("WATCHDOG=1") }

    private func send(_ message: String) throws(ServiceManagerError) -> Bool {
        guard let socket else { return false }
        try socket.send(message)
        return true
    }
}

final class NotifySocket: Sendable {
    private let system: any SystemCalls
    private let descriptor: Int32
    private let address: [UInt8]

    /// - Parameter name: the value of `NOTIFY_SOCKET`: an absolute path, or `@` and an abstract name.
    init(_ name: String, _ system: any SystemCalls) throws(ServiceManagerError) {
        address = try NotifySocket.address(of: name)
        self.system = system
        descriptor = system.openNotifySocket()
        if descriptor < 0 { throw .system(.last("make a socket to the service manager")) }
    }

    deinit {
        system.release(descriptor)
    }

    /// Returns a `sockaddr_un` of exactly the required length, because only the length ends an abstract name.
    static func address(of name: String) throws(ServiceManagerError) -> [UInt8] {
        func invalid(_ reason: String) -> ServiceManagerError { .invalid(.notifySocket, name, reason) }
        var path = Array(name.utf8)
        let isAbstract = path.first == UInt8(ascii: "@")
        guard isAbstract || path.first == UInt8(ascii: "/"), path.count > 1 else {
            throw invalid("it must be an absolute path, or @ and a name; other addresses are not supported")
        }
        if path.contains(0) { throw invalid("a zero byte would end the path early") }
        if isAbstract { path[0] = 0 } else { path.append(0) }
        guard path.count <= MemoryLayout<sockaddr_un>.size - MemoryLayout<sa_family_t>.size else {
            throw invalid("the system allows 107 bytes")
        }
        return withUnsafeBytes(of: sa_family_t(AF_UNIX)) { Array($0) } + path
    }

    /// Sends a datagram, or throws `busy` if the receiver's queue is full. Any thread.
    func send(_ message: String) throws(ServiceManagerError) {
        assert(!message.isEmpty && address.count > 2, "an empty message, or one to nobody")
        let bytes = Array(message.utf8)
        var sent = -1
        repeat { sent = system.notify(descriptor, at: address, bytes) } while sent < 0 && errno == EINTR
        guard sent < 0 else { return }
        throw errno == EAGAIN ? .busy : .system(.last("notify the service manager"))
    }
}
