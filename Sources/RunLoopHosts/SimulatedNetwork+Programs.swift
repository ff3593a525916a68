@_spi(Ports) internal import RunLoopCore
@_spi(Ports) internal import RunLoopSimulation
public import RunLoopUnix

extension SimulatedNetwork {
    /// Adds a host and starts a program of the system on it, as it is installed on the machine of the test: a Swift
    /// program of the package, redis-server, Python.
    ///
    /// ```swift
    /// network.addProgram("client", at: "/usr/bin/python3", arguments: ["-c", script])
    /// ```
    ///
    /// - Parameters:
    ///   - name: the host's name; unique in the network.
    ///   - path: the path of the program on the machine of the test, from the root.
    ///   - arguments: the arguments, without the name of the program.
    ///   - addresses: the host's addresses, as for ``addHost(_:addresses:service:user:environment:mayFail:program:)``.
    ///   - service: the supervision of the process by a service manager; `nil`, the default, for none.
    ///   - user: the user that the process runs as; root by default.
    ///   - environment: the variables of the process; none by default.
    ///   - mayFail: `true` if the program may exit with a status other than zero, or crash; `false` by default.
    @discardableResult
    public func addProgram(
        _ name: String, at path: String, arguments: [String] = [], addresses: [String]? = nil,
        service: SimulatedHost.Service? = nil, user: ChildProcess.User? = nil, environment: [String: String] = [:],
        mayFail: Bool = false
    ) -> SimulatedHost {
        require(path.hasPrefix("/"), "a program is at a path from the root, such as /usr/bin/\(path)")
        return addHost(name, addresses, service, user, environment, mayFail) { [network] _, process in
            let numbers = network.simulation.randomNumbers(for: "\(name) \(process.processIdentifier)")
            let program = try SystemProgram(path, of: process, seededBy: numbers)
            process.program = program
            try program.run(arguments)
            return nil
        }
    }
}
