@_spi(Ports) public import RunLoopCore

/// A child process that runs another program.
///
/// ```swift
/// let child = try ChildProcess.spawn(.named("sort"), arguments: ["-n"], standardInput: .pipe, standardOutput: .pipe)
/// let source = ChildSource(child) { child, status in print(child.processIdentifier, status) }
/// try loop.add(source, forMode: .default)
/// ```
///
/// A ``ChildSource`` reports the end of the child. If you release a child and its sources, the child keeps running. The
/// library still reaps it, so that it leaves no zombie; a small thread waits for a child that is still running.
///
/// Use a `ChildProcess` on one thread; it is not `Sendable`, but its ``remote`` is. A child started in a simulation
/// runs in real time, and simulated time waits for it, except for a child of a simulated host.
public final class ChildProcess {
    /// The system's number for the child, valid until the child is reaped after the handler of its first source.
    public let processIdentifier: Int32

    /// The end for writing the child's input, if it was started with `standardInput: .pipe`.
    public let standardInput: PipeEnd?
    /// The end for reading the child's output, if it was started with `standardOutput: .pipe`.
    public let standardOutput: PipeEnd?
    /// The end for reading the child's errors, if it was started with `standardError: .pipe`.
    public let standardError: PipeEnd?

    /// The way in which the child ended; `nil` until the handler of a source is called.
    public private(set) var status: ExitStatus?

    /// The descriptor that is readable once the child has ended; -1 if the system has none, so that SIGCHLD is needed.
    var descriptor: Int32 { target.descriptor }
    private let target: SignalTarget
    private let system: any SystemCalls
    /// The timer that kills a child that has not ended in time.
    private var deadline: Timer?
    /// The hold on simulated time while a child of the real system runs.
    private var hold: (any TimeHold)?

    /// Starts a program.
    ///
    /// The child starts with no signals blocked, every signal at its default, and only the three standard descriptors.
    /// None of this program's code runs in the child. The call returns when the other program has begun. Any thread.
    ///
    /// - Parameters:
    ///   - executable: the program.
    ///   - arguments: the program's arguments, without its own name.
    ///   - environment: the child's environment variables.
    ///   - workingDirectory: the child's working directory; by default this process's.
    ///   - standardInput: the source of the child's input.
    ///   - standardOutput: the target of the child's output.
    ///   - standardError: the target of the child's errors.
    ///   - group: the child's process group and session.
    ///   - user: the user and groups that the child runs as; by default this process's. The user needs access to the
    ///     working directory and the program.
    ///   - resourceLimits: the maximum of each resource that the child may use. Only a child that runs as root can
    ///     raise these limits.
    /// - Throws: ``SystemError``, whose operation names the failed step. Possible reasons: the program or the directory
    ///   does not exist or is not accessible, the user or a limit may not be set, a text has a zero byte, a descriptor
    ///   is not open, or the system has no room for another process.
    public static func spawn(
        _ executable: Executable, arguments: [String] = [], environment: Environment = .inherit,
        workingDirectory: String? = nil, standardInput: Stream = .inherit, standardOutput: Stream = .inherit,
        standardError: Stream = .inherit, group: Group = .inherit, user: User? = nil,
        resourceLimits: [Resource: UInt64] = [:]
    ) throws(SystemError) -> ChildProcess {
        let request = SpawnRequest(
            system: WorldSystem.current, executable: executable, arguments: arguments, environment: environment,
            workingDirectory: workingDirectory, streams: [standardInput, standardOutput, standardError], group: group,
            user: user, limits: resourceLimits)
        return try ChildProcess(request)
    }

    /// - Parameter usesDescriptor: `false` in tests, as if the system had no process descriptors.
    init(_ request: SpawnRequest, usesDescriptor: Bool = true) throws(SystemError) {
        system = request.system
        hold = RunLoop.installed.flatMap { [system] loop in
            system.holdTime(for: "the end of child \(request.executable)", on: loop)
        }
        let spawned = try request.spawn()
        processIdentifier = spawned.pid
        (standardInput, standardOutput, standardError) = (spawned.pipes[0], spawned.pipes[1], spawned.pipes[2])
        // The number cannot belong to another process yet, because even an ended child has not been reaped.
        target = SignalTarget(
            system, processIdentifier: spawned.pid, hasGroup: request.group != .inherit,
            descriptor: usesDescriptor ? system.openProcess(spawned.pid) : -1)
    }

    deinit {
        target.abandon()
    }

    /// Sends a signal to the child, or to its whole process group if it was started in its own group or session. The
    /// signal never reaches an unrelated process, even if the child has ended and the system has reused its number.
    ///
    /// In the handler of a child source, the signal still reaches the group of the ended child.
    ///
    /// - Returns: `false` if the child has been reaped, so that nothing was sent. A child that has ended but has not
    ///   been reaped accepts and ignores signals.
    /// - Throws: ``SystemError`` if the number is not a signal, or if the child runs as another user.
    @discardableResult
    public func kill(_ signal: Signal = .terminate) throws(SystemError) -> Bool {
        try target.send(signal)
    }

    /// Stops the child: sends a signal now, and SIGKILL after `grace`. The child's own group or session, if any,
    /// receives both signals. Processes of the group that outlive the child are killed when it has ended, so a child
    /// that gives its own children time must wait for them.
    ///
    /// A ``ChildSource`` notices the end of the child; without one, SIGKILL is always sent after `grace`. Until then,
    /// `loop` keeps the child and has something to wait for. If the loop ends first, SIGKILL is sent at once. Another
    /// call with a shorter time brings SIGKILL forward; a longer time changes nothing. Has no effect once the child has
    /// been reaped. Call it on the thread of the loop and the child.
    ///
    /// - Parameters:
    ///   - grace: the time until SIGKILL, on the loop's clock.
    ///   - signal: the signal that asks the child to end.
    ///   - loop: the calling thread's loop.
    ///   - modes: the modes in which SIGKILL may be sent.
    /// - Throws: ``SystemError`` if the first signal cannot be sent; then nothing else happens.
    public func stop(
        within grace: Duration, asking signal: Signal = .terminate, on loop: RunLoop,
        inModes modes: RunLoop.Modes = .common,
        file: StaticString = #fileID, line: UInt32 = #line
    ) throws(SystemError) {
        guard try kill(signal) else { return }
        let date = loop.now + grace
        guard deadline.map({ date < $0.fireDate }) ?? true else { return }
        cancelDeadline()
        let timer = Timer(at: date, origin: RunLoop.Origin(file: file, line: line)) { _ in }
        timer.name = "end of child \(processIdentifier)"
        // Called when the timer has fired, and at the end of the loop.
        timer.invalidationHandler = { [self] in
            _ = try? kill(.kill)
            deadline = nil
        }
        assert(deadline == nil, "a child has two deadlines")
        deadline = timer
        loop.add(timer, forMode: modes)
    }

    private func cancelDeadline() {
        deadline?.invalidationHandler = nil
        deadline?.invalidate()
        deadline = nil
    }

    /// A handle through which other threads signal the child.
    public var remote: Remote { Remote(target: target) }

    /// A handle through which any thread may signal a child, keeping neither the child nor its number. A value and
    /// `Sendable`.
    public struct Remote: Sendable {
        fileprivate let target: SignalTarget

        /// Sends a signal, as ``ChildProcess/kill(_:)`` does. Any thread.
        ///
        /// - Returns: `false` if the child has been reaped, or its `ChildProcess` has been released.
        @discardableResult
        public func kill(_ signal: Signal = .terminate) throws(SystemError) -> Bool {
            try target.send(signal)
        }
    }

    /// Returns the child's status if it has ended, without reaping it.
    func look() -> ExitStatus? {
        if let status { return status }
        status = system.state(ofChild: processIdentifier, descriptor, reaps: false)
        if status == .lost {
            // Another process may now have the number.
            target.forget()
            cancelDeadline()
        }
        if status != nil { hold?.release() }
        return status
    }

    /// Returns the child's number to the system once its exit status is known.
    func reap() {
        assert(status != nil, "a child is reaped before it has ended")
        guard status != nil else { return }
        if deadline != nil {
            // The group had as much time as the child itself.
            _ = try? kill(.kill)
            cancelDeadline()
        }
        target.reap()
    }
}

@available(*, unavailable, message: "a child process belongs to one thread; give other threads its remote")
extension ChildProcess: Sendable {}
