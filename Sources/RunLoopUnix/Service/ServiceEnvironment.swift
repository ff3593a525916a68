internal import Glibc

/// The environment variables of the service manager's protocol.
struct ServiceEnvironment {
    static let notifySocket = "NOTIFY_SOCKET"
    static let watchdogPeriod = "WATCHDOG_USEC"
    static let watchdogProcess = "WATCHDOG_PID"
    static let listenCount = "LISTEN_FDS"
    static let listenProcess = "LISTEN_PID"
    static let listenNames = "LISTEN_FDNAMES"

    private let variables: [String: String]
    private let system: any SystemCalls
    /// Whether the variables are the process's own: only those can be removed.
    private let isProcess: Bool

    /// The given variables, or the process's.
    init(_ variables: [String: String]?, _ system: any SystemCalls) {
        isProcess = variables == nil
        self.system = system
        self.variables = variables ?? ServiceEnvironment.ofProcess(system)
    }

    /// The number of this process.
    var ownProcess: pid_t { system.processIdentifier }

    /// The variable's value; an empty one counts as absent.
    subscript(name: String) -> String? {
        variables[name].flatMap { $0.isEmpty ? nil : $0 }
    }

    /// The value of a variable as a number.
    func number(_ name: String) throws(ServiceManagerError) -> UInt64? {
        guard let text = self[name] else { return nil }
        // Digits only: the initialiser would accept a sign too.
        guard text.utf8.allSatisfy({ (48...57).contains($0) }), let number = UInt64(text) else {
            throw .invalidVariable(name: name, value: text, reason: "it is to be a number")
        }
        return number
    }

    /// The number of the process that a variable names; at least 1.
    func process(_ name: String) throws(ServiceManagerError) -> pid_t? {
        guard let number = try number(name) else { return nil }
        guard number > 0, let process = pid_t(exactly: number) else {
            throw .invalidVariable(name: name, value: "\(number)", reason: "it is to be a process")
        }
        return process
    }

    /// Removes variables from the process's environment, so that its children do not take them for theirs.
    func remove(_ names: [String]) {
        guard isProcess else { return }
        for name in names { system.removeVariable(name) }
    }

    /// One by one: the table itself is a variable that other threads may change.
    private static func ofProcess(_ system: any SystemCalls) -> [String: String] {
        let names = [notifySocket, watchdogPeriod, watchdogProcess, listenCount, listenProcess, listenNames]
        return names.reduce(into: [:]) { variables, name in variables[name] = system.variable(name) }
    }
}
