public import RunLoopCore

/// A child process: another program, started by this one.
///
/// ```swift
/// let child = try ChildProcess.spawn(.named("sort"), arguments: ["-n"], standardInput: .pipe, standardOutput: .pipe)
/// let source = ChildSource(child) { child, status in print(child.processIdentifier, status) }
/// try loop.add(source, forMode: .default)
/// ```
///
/// A ``ChildSource`` reports when the child has ended. If you drop a child and its sources, the child keeps running.
/// The library still reaps it, so that it leaves no zombie; for a child that is still running, a small thread waits.
///
/// Use an object of this kind on one thread; it is not `Sendable`, but its ``remote`` is. Beside a loop in a simulation
/// a child lives in real time, and the time of the simulation waits for it, except for a child of a simulated host.
public final class ChildProcess {
    /// The system's number for the child. It is valid until the child is reaped, which happens after the handler of its
    /// first source.
    public let processIdentifier: Int32

    /// The end for writing the child's input, if it was started with `standardInput: .pipe`.
    public let standardInput: PipeEnd?
    /// The end for reading the child's output, if it was started with `standardOutput: .pipe`.
    public let standardOutput: PipeEnd?
    /// The end for reading the child's errors, if it was started with `standardError: .pipe`.
    public let standardError: PipeEnd?

    /// The way in which the child ended; `nil` until the handler of a source is called.
    public private(set) var status: ExitStatus?

    /// Readable once the child has ended; -1 if the system has no such descriptor, which makes SIGCHLD necessary.
    var descriptor: Int32 { target.descriptor }
    private let target: SignalTarget
    private let system: any SystemCalls
    /// The timer that ends a child that has not ended in time.
    private var deadline: Timer?
    /// Holds the time of a simulation while a child of the real system runs.
    private var hold: (any TimeHold)?

    /// Starts a program.
    ///
    /// The child begins with no signal blocked, with every signal at its default, and with no descriptors except the
    /// three standard ones. None of this program's code runs in it. The call returns when the other program has begun.
    /// Any thread.
    ///
    /// - Parameters:
    ///   - executable: the program.
    ///   - arguments: its arguments, without its own name.
    ///   - environment: its environment variables.
    ///   - workingDirectory: its working directory; this process's unless given.
    ///   - standardInput: where it reads.
    ///   - standardOutput: where it writes.
    ///   - standardError: where it writes errors.
    ///   - group: its process group and session.
    ///   - user: the user and the groups that it runs as; this process's unless given. The working directory and the
    ///     program must be accessible to that user.
    ///   - resourceLimits: the most that it may use of each resource. It cannot raise these limits, unless it runs as
    ///     root.
    /// - Throws: ``SystemError``, whose operation names the failed step. Possible reasons: the program or the directory
    ///   does not exist or may not be used; the user or a limit may not be set. Others are a zero byte in a text, a
    ///   descriptor that is not open, and a system without room for another process.
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
        // The number cannot belong to another process yet: even a child that has ended was not reaped.
        target = SignalTarget(
            system, processIdentifier: spawned.pid, hasGroup: request.group != .inherit,
            descriptor: usesDescriptor ? system.openProcess(spawned.pid) : -1)
    }

    deinit {
        target.abandon()
    }

    /// Sends a signal to the child and, if it was started with a group or a session of its own, to every process of
    /// that group: those that it started, unless they left the group. The signal never reaches another process, even if
    /// the child has ended and the system has reused its number.
    ///
    /// In the handler of a child source the signal still reaches the group, though the child has ended.
    ///
    /// - Returns: `false` if the child was reaped already, so that nothing was sent. A child that has ended but is not
    ///   reaped yet accepts signals and ignores them.
    /// - Throws: ``SystemError`` if the number is no signal, or if the child runs as another user.
    @discardableResult
    public func kill(_ signal: Signal = .terminate) throws(SystemError) -> Bool {
        try target.send(signal)
    }

    /// Asks the child to end, and ends it by force if it takes too long: sends a signal now, and SIGKILL after `grace`.
    /// A group or a session of its own receives both signals. Processes of the group that outlive the child are killed
    /// when it has ended: a child that gives its own children time waits for them.
    ///
    /// A ``ChildSource`` notices when the child has ended; without one, SIGKILL is sent in any case when `grace` is
    /// over. Until then `loop` keeps the child and has something to wait for. If the loop ends first, SIGKILL is sent
    /// at once. Another call with a shorter time brings SIGKILL forward; a longer time changes nothing. Harmless once
    /// the child was reaped. Call it on the thread of the loop and the child.
    ///
    /// - Parameters:
    ///   - grace: how long the child has; counted on the loop's clock.
    ///   - signal: the signal that asks it to end.
    ///   - loop: the calling thread's loop.
    ///   - modes: the modes in which SIGKILL may be sent.
    /// - Throws: ``SystemError`` if the first signal cannot be sent; then nothing else happens.
    public func stop(
        within grace: Duration, asking signal: Signal = .terminate, on loop: RunLoop, modes: RunLoop.Modes = .common,
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
        deadline = timer
        loop.add(timer, forMode: modes)
    }

    private func cancelDeadline() {
        deadline?.invalidationHandler = nil
        deadline?.invalidate()
        deadline = nil
    }

    /// A handle with which other threads signal the child.
    public var remote: Remote { Remote(target: target) }

    /// A handle with which any thread may signal a child. It keeps neither the child nor its number. A value and
    /// `Sendable`.
    public struct Remote: Sendable {
        fileprivate let target: SignalTarget

        /// Sends a signal, as ``ChildProcess/kill(_:)`` does. Any thread.
        ///
        /// - Returns: `false` if the child was reaped already, or its `ChildProcess` was released.
        @discardableResult
        public func kill(_ signal: Signal = .terminate) throws(SystemError) -> Bool {
            try target.send(signal)
        }
    }

    /// Checks whether the child has ended, and how, without reaping it.
    func look() -> ExitStatus? {
        if let status { return status }
        status = system.state(ofChild: processIdentifier, descriptor, reaps: false)
        if status == .lost {
            // Another process may have the number now.
            target.forget()
            cancelDeadline()
        }
        if status != nil { hold?.release() }
        return status
    }

    /// Returns the child's number to the system once its exit status is known.
    func reap() {
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
