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
/// A ``ChildSource`` reports when the child has ended. If you drop a child and its sources, the child keeps running.
/// The library still reaps it, so that it leaves no zombie; if it is still running then, a small thread does nothing
/// but wait for it.
///
/// Use an object of this kind on one thread; it is not `Sendable`. A child lives in real time, even beside a loop in a
/// simulation.
public final class ChildProcess {
    /// The system's number for the child. It is valid until the child is reaped, which happens after the handler of its
    /// first source.
    public let processIdentifier: Int32

    /// Where to write the child's input, if it was started with `standardInput: .pipe`.
    public let standardInput: PipeEnd?
    /// Where to read the child's output, if it was started with `standardOutput: .pipe`.
    public let standardOutput: PipeEnd?
    /// Where to read the child's errors, if it was started with `standardError: .pipe`.
    public let standardError: PipeEnd?

    /// How it ended; `nil` until the handler of a source is called.
    public private(set) var status: ExitStatus?

    /// Readable once the child has ended. -1 if the system has no such descriptor: then SIGCHLD is used.
    let descriptor: Int32
    private var isReaped = false
    private let forkCount = rlk_fork_count()

    /// Starts a program.
    ///
    /// The child begins with no signal blocked, with every signal at its default, and with no descriptor but the three
    /// standard ones. None of this program's code runs in it. Any thread.
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
    /// - Throws: ``SystemError`` if the program or the directory does not exist or may not be used, if a text contains
    ///   a zero byte, if a descriptor is not open, or if the system has no room for another process.
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

    /// Starts a program, and behaves as if the system had no process descriptors if told so. Tests use it.
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
        // The number cannot be another process's yet: even if the child has ended it has not been reaped.
        descriptor = usesDescriptor ? rlk_pidfd_open(spawned.pid) : -1
    }

    deinit {
        if forkCount != rlk_fork_count() || isReaped {
            // Reaped already, or a child of the process that this one was forked from.
            if descriptor >= 0 { close(descriptor) }
        } else {
            // Without room for a thread it stays a zombie until this process ends: there is nobody to tell.
            _ = rlk_reap_later(processIdentifier, descriptor)
        }
    }

    /// Sends a signal to the child. It never reaches another process, even if the child has ended and its number has
    /// been given away.
    ///
    /// - Returns: `false` if the child was reaped already, so that nothing was sent. A child that has ended but was not
    ///   reaped yet accepts signals and ignores them.
    /// - Throws: ``SystemError`` if the number is no signal, or if the child runs as another user.
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

    /// Looks whether the child has ended, and how, without reaping it.
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

    /// Gives the child's number back to the system once it is known how the child ended.
    func reap() {
        guard status != nil, !isReaped else { return }
        isReaped = true
        var exit = rlk_exit()
        _ = rlk_child_state(processIdentifier, descriptor, 1, &exit)
    }
}

@available(*, unavailable, message: "a child process belongs to one thread")
extension ChildProcess: Sendable {}
