internal import Glibc

/// The environment variables of the service manager's protocol.
struct ServiceEnvironment {
    enum Variable: String, CaseIterable {
        case notifySocket = "NOTIFY_SOCKET"
        case watchdogPeriod = "WATCHDOG_USEC"
        case watchdogProcess = "WATCHDOG_PID"
        case listenCount = "LISTEN_FDS"
        case listenProcess = "LISTEN_PID"
        case listenNames = "LISTEN_FDNAMES"
    }

    private let variables: [String: String]
    private let system: any SystemCalls
    /// True if the variables are the process's own, which can be removed.
    private let isProcess: Bool

    init(_ variables: [String: String]?, _ system: any SystemCalls) {
        isProcess = variables == nil
        self.system = system
        // Read one by one, because other threads may change the table itself.
        self.variables =
            variables ?? Variable.allCases.reduce(into: [:]) { $0[$1.rawValue] = system.variable($1.rawValue) }
    }

    var ownProcess: pid_t { system.processIdentifier }

    /// The value of a variable; an empty value counts as absent.
    subscript(variable: Variable) -> String? {
        variables[variable.rawValue].flatMap { $0.isEmpty ? nil : $0 }
    }

    func number(_ variable: Variable) throws(ServiceManagerError) -> UInt64? {
        guard let text = self[variable] else { return nil }
        // Digits only, because the initializer would also accept a sign.
        guard text.utf8.allSatisfy({ (48...57).contains($0) }), let number = UInt64(text) else {
            throw .invalid(variable, text, "it must be a number")
        }
        return number
    }

    /// Returns the number of the process that a variable names; at least 1.
    func process(_ variable: Variable) throws(ServiceManagerError) -> pid_t? {
        guard let number = try number(variable) else { return nil }
        guard number > 0, let process = pid_t(exactly: number) else {
            throw .invalid(variable, "\(number)", "it must be the number of a process")
        }
        return process
    }

    /// Removes variables from the process's environment, so that its children do not mistake them for theirs.
    func remove(_ removed: [Variable]) {
        guard isProcess else { return }
        for variable in removed { system.removeVariable(variable.rawValue) }
    }
}

extension ServiceManagerError {
    static func invalid(_ variable: ServiceEnvironment.Variable, _ value: String, _ reason: String) -> Self {
        .invalidVariable(name: variable.rawValue, value: value, reason: reason)
    }
}
