internal import Glibc

/// The service manager that started this process, and what it can be told: systemd's notification protocol, without
/// its library.
///
/// ```swift
/// let manager = try ServiceManager()
/// try manager.ready()
/// try manager.status("serving 12 clients")
/// ```
///
/// Where no manager is there, as in a terminal, nothing is sent: each call returns `false`, and ``remarks`` says why.
/// May be used from any thread. The messages that change the service's state wait if the manager's queue is full, as
/// `sd_notify` does; ``status(_:)`` and ``feedWatchdog()`` do not.
public final class ServiceManager: Sendable {
    /// Whether there is somebody to notify.
    public var isPresent: Bool { socket != nil }

    /// How long the manager waits for a sign of life before it acts; `nil` if it does not wait for any, or for those of
    /// another process. See ``Watchdog``.
    public let watchdogPeriod: Duration?

    /// What of the environment is not used, and why, a line each; for a log.
    public let remarks: [String]

    private let socket: NotifySocket?

    /// Reads and checks the environment.
    ///
    /// - Parameters:
    ///   - environment: the variables; the process's unless given.
    ///   - unsetEnvironment: whether to remove the variables from the process's environment afterwards, so that its
    ///     children do not speak in its name. Before there are other threads: the C library's environment is not safe
    ///     among threads. Nothing is removed if `environment` was given.
    /// - Throws: ``ServiceManagerError/invalidVariable(name:value:reason:)``, or an error of the system.
    public init(environment: [String: String]? = nil, unsetEnvironment: Bool = false) throws(ServiceManagerError) {
        let variables = ServiceEnvironment(environment)
        var remarks: [String] = []
        if let name = variables[ServiceEnvironment.notifySocket] {
            socket = try NotifySocket(name)
        } else {
            socket = nil
            remarks.append("NOTIFY_SOCKET is not set: there is no service manager to notify")
        }
        watchdogPeriod = try ServiceManager.watchdogPeriod(variables, &remarks)
        self.remarks = remarks
        if unsetEnvironment {
            variables.remove([
                ServiceEnvironment.notifySocket, ServiceEnvironment.watchdogPeriod, ServiceEnvironment.watchdogProcess,
            ])
        }
    }

    private static func watchdogPeriod(
        _ variables: ServiceEnvironment, _ remarks: inout [String]
    ) throws(ServiceManagerError) -> Duration? {
        guard let microseconds = try variables.number(ServiceEnvironment.watchdogPeriod) else { return nil }
        guard microseconds > 0, microseconds <= Int64.max / 1000 else {
            throw .invalidVariable(
                name: ServiceEnvironment.watchdogPeriod, value: "\(microseconds)",
                reason: "it is to be a time in microseconds, above zero and below 292 years")
        }
        if let process = try variables.process(ServiceEnvironment.watchdogProcess), process != getpid() {
            remarks.append("WATCHDOG_PID is \(process), and this is process \(getpid()): the watchdog is not ours")
            return nil
        }
        return .microseconds(Int64(microseconds))
    }

    // MARK: What it can be told

    /// The service has started, or has finished reloading.
    ///
    /// - Returns: whether somebody was told.
    @discardableResult
    public func ready() throws(ServiceManagerError) -> Bool { try send("READY=1") }

    /// The service begins to reload its configuration; ``ready()`` ends it. What `Type=notify-reload` needs: the
    /// message carries the time of the system's monotonic clock.
    @discardableResult
    public func reloading() throws(ServiceManagerError) -> Bool {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return try send("RELOADING=1\nMONOTONIC_USEC=\(time.tv_sec * 1_000_000 + time.tv_nsec / 1000)")
    }

    /// The service begins to stop.
    @discardableResult
    public func stopping() throws(ServiceManagerError) -> Bool { try send("STOPPING=1") }

    /// What the service is doing, in a line for people; `systemctl status` shows it.
    ///
    /// - Throws: ``ServiceManagerError/invalidMessage(_:reason:)`` if it has more than one line;
    ///   ``ServiceManagerError/busy`` if the manager's queue is full.
    @discardableResult
    public func status(_ text: String) throws(ServiceManagerError) -> Bool {
        guard !text.utf8.contains(where: { $0 == 10 || $0 == 0 }) else {
            throw .invalidMessage(text, reason: "a status is one line; what follows would be taken for other messages")
        }
        return try send("STATUS=\(text)", waits: false)
    }

    /// Which process is the service's main one, where that is not the one that was started.
    @discardableResult
    public func mainPID(_ process: Int32) throws(ServiceManagerError) -> Bool {
        guard process > 0 else { throw .invalidMessage("MAINPID=\(process)", reason: "it is to be a process") }
        return try send("MAINPID=\(process)")
    }

    /// Starting, reloading or stopping takes longer: the manager is to wait this much from now on for the next message,
    /// also beyond the time that the unit allows.
    @discardableResult
    public func extendTimeout(_ duration: Duration) throws(ServiceManagerError) -> Bool {
        let microseconds = duration / .microseconds(1)
        guard microseconds >= 1, microseconds < 0x1p63 else {
            throw .invalidMessage("EXTEND_TIMEOUT_USEC=\(duration)", reason: "it is to be a microsecond or more")
        }
        return try send("EXTEND_TIMEOUT_USEC=\(Int64(microseconds))")
    }

    /// A sign of life. A ``Watchdog`` sends it in time.
    ///
    /// - Throws: ``ServiceManagerError/busy`` if the manager's queue is full.
    @discardableResult
    public func feedWatchdog() throws(ServiceManagerError) -> Bool { try send("WATCHDOG=1", waits: false) }

    private func send(_ message: String, waits: Bool = true) throws(ServiceManagerError) -> Bool {
        guard let socket else { return false }
        try socket.send(message, waits: waits)
        return true
    }
}
