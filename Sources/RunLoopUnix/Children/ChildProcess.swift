internal import CShims
internal import Glibc

/// A child process: another program, started by this one.
///
/// ```swift
/// let child = try ChildProcess.spawn(.named("sort"), arguments: ["-n"], standardInput: .pipe, standardOutput: .pipe)
/// let source = ChildSource(child) { child, status in print(child.processIdentifier, status) }
/// try loop.add(source, forMode: .default)
/// ```
///
/// A ``ChildSource`` says when it has ended. A child that is dropped, with its sources, goes on undisturbed; the library
/// reaps it, so that it leaves no zombie. If it still runs then, that takes a small thread which does nothing but wait.
///
/// An object of this kind is used on one thread. A child lives in real time, also beside a loop in a simulation.
public final class ChildProcess {
    /// The system's number for the child. It is the child's until it is reaped: after the handler of its first source.
    public let processIdentifier: Int32

    /// Where to write what the child reads, if it was started with `standardInput: .pipe`.
    public let standardInput: PipeEnd?
    /// Where to read what the child writes, if it was started with `standardOutput: .pipe`.
    public let standardOutput: PipeEnd?
    /// Where to read what the child writes as errors, if it was started with `standardError: .pipe`.
    public let standardError: PipeEnd?

    /// How it has ended; `nil` until the handler of a source is called.
    public private(set) var status: ExitStatus?

    /// Readable once the child has ended. -1 if the system cannot say it this way: then SIGCHLD does.
    let descriptor: Int32
    private var isReaped = false
    private let forkCount = rlk_fork_count()

    /// Starts a program.
    ///
    /// The child begins with no signal blocked, with all signals at their defaults, and with no descriptor but the three
    /// standard ones. Nothing of this program runs in it. Any thread.
    ///
    /// - Parameters:
    ///   - executable: the program.
    ///   - arguments: what it is given after its own name.
    ///   - environment: its environment variables.
    ///   - workingDirectory: its working directory; this process's unless given.
    ///   - standardInput: what it reads.
    ///   - standardOutput: what it writes.
    ///   - standardError: what it writes as errors.
    ///   - group: its process group and session.
    /// - Throws: ``SystemError`` if the program or the directory is not there or must not be used, for a text with a
    ///   zero byte, for a descriptor that is not open, and if the system has no room for another process.
    public static func spawn(
        _ executable: Executable, arguments: [String] = [], environment: Environment = .inherit,
        workingDirectory: String? = nil, standardInput: Stream = .inherit, standardOutput: Stream = .inherit,
        standardError: Stream = .inherit, group: Group = .inherit
    ) throws(SystemError) -> ChildProcess {
        let request = SpawnRequest(
            executable: executable, arguments: arguments, environment: environment, workingDirectory: workingDirectory,
            streams: [standardInput, standardOutput, standardError], group: group)
        return ChildProcess(try request.spawn(), usesDescriptor: true)
    }

    /// Starts a program, and does as if the system had no process descriptors: for tests of what happens then.
    package static func spawn(
        withoutDescriptor executable: Executable, arguments: [String] = []
    ) throws(SystemError) -> ChildProcess {
        let request = SpawnRequest(
            executable: executable, arguments: arguments, environment: .inherit, workingDirectory: nil,
            streams: [.inherit, .null, .inherit], group: .inherit)
        return ChildProcess(try request.spawn(), usesDescriptor: false)
    }

    private init(_ spawned: SpawnRequest.Spawned, usesDescriptor: Bool) {
        processIdentifier = spawned.pid
        (standardInput, standardOutput, standardError) = (spawned.pipes[0], spawned.pipes[1], spawned.pipes[2])
        // The number cannot be another process's yet: the child is not reaped, also if it has ended.
        descriptor = usesDescriptor ? rlk_pidfd_open(spawned.pid) : -1
    }

    deinit {
        if forkCount != rlk_fork_count() || isReaped {
            // Reaped, or the child of the process that this one was forked from.
            if descriptor >= 0 { close(descriptor) }
        } else {
            // Without room for a thread it stays a zombie until this process ends: there is nobody to tell.
            _ = rlk_reap_later(processIdentifier, descriptor)
        }
    }

    /// Sends a signal to the child. It can never reach another process, also if the child has ended meanwhile and its
    /// number has been given away.
    ///
    /// - Returns: `false` if the child has ended and was reaped: nothing was sent. A child that has ended but was not
    ///   reaped yet takes signals and does nothing.
    /// - Throws: ``SystemError`` if the number is no signal, or the child runs as somebody else.
    @discardableResult
    public func kill(_ signal: Signal = .terminate) throws(SystemError) -> Bool {
        guard !isReaped else { return false }
        // Without a descriptor the number is safe too: it is the child's until this object reaps it.
        let status =
            descriptor >= 0
            ? rlk_pidfd_send_signal(descriptor, signal.rawValue) : Glibc.kill(processIdentifier, signal.rawValue)
        if status == 0 { return true }
        if errno == ESRCH { return false }
        throw .last("send \(signal) to process \(processIdentifier)")
    }

    /// Looks whether the child has ended, and how; it is not reaped.
    func look() -> ExitStatus? {
        if let status { return status }
        var exit = rlk_exit()
        if rlk_child_state(processIdentifier, descriptor, 0, &exit) == 0 {
            status = ExitStatus(exit)
        } else {
            // Somebody else has reaped it; the number may be another's by now.
            status = .lost
            isReaped = true
        }
        return status
    }

    /// Gives the child's number back to the system, once it is known how it has ended.
    func reap() {
        guard status != nil, !isReaped else { return }
        isReaped = true
        var exit = rlk_exit()
        _ = rlk_child_state(processIdentifier, descriptor, 1, &exit)
    }
}

@available(*, unavailable, message: "a child process belongs to one thread")
extension ChildProcess: Sendable {}
